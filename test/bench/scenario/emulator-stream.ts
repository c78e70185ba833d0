import { Type } from 'typebox'
import { Child } from '../child.ts'
import type { Scenario } from '../scenario.ts'
import { connected, loadFrames, PATIENCE } from '../stage.ts'

const NAME = 'emulator-stream'
const EVENTS = 100_000
/** Characters of one message: with what stands around it, as long as the frames of the bench's own service. */
const CHARACTERS = 180

const Address = Type.Object({ url: Type.String(), token: Type.String() })
const Read = Type.Object({ firstAt: Type.Number(), lastAt: Type.Number() })

/** Persisted events through one stream from process to process; the baseline writes frames that it encoded beforehand. */
export const emulatorStream: Scenario = {
  measures: [
    {
      name: NAME,
      unit: 'events/s',
      digits: 0,
      judge: (ours) => ours,
      judged: '# events/s',
      floor: { at: 'least', value: 10_000 },
    },
  ],
  async open(bench) {
    const count = bench.scaled(EVENTS)
    const source = bench.use(await Child.fork('source'))
    const bare = await source.ask('address', Type.String())
    return {
      async ours() {
        await using emulator = await Child.fork('emulator')
        const { url, token } = await emulator.ask('address', Address)
        return await rate(emulator, url, token, count, () =>
          emulator.do('send', { text: `burst ${count} ${CHARACTERS}` }),
        )
      },
      async baseline() {
        await loadFrames(source, count)
        return await rate(source, bare, 'svc_pat_bench', count, () => source.do('send', undefined, PATIENCE))
      },
    }
  },
}

async function rate(service: Child, url: string, token: string, frames: number, send: () => Promise<void>) {
  await using reader = await Child.fork('reader')
  await reader.do('read', { service: url, token, frames })
  await connected(service)
  const [{ firstAt, lastAt }] = await Promise.all([reader.ask('done', Read, undefined, PATIENCE), send()])
  return { [NAME]: (frames / (lastAt - firstAt)) * 1000 }
}
