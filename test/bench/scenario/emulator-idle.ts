import { setTimeout as pause } from 'node:timers/promises'
import { Type } from 'typebox'
import { request } from 'undici'
import { Child } from '../child.ts'
import { residentMemory } from '../usage.ts'
import type { Scenario } from '../scenario.ts'

const NAME = 'emulator-idle'
const SESSIONS = 2000
const AT_ONCE = 32
/** Longest until the last turn is over, milliseconds. */
const PATIENCE = 30_000

const Address = Type.Object({ url: Type.String(), token: Type.String() })
const Counts = Type.Object({ idle: Type.Integer(), all: Type.Integer() })

/** What an emulator has resident at its worst with sessions that each worked one turn and now wait for more. */
export const emulatorIdle: Scenario = {
  measures: [
    {
      name: NAME,
      unit: 'MB',
      digits: 0,
      judge: (ours) => ours,
      judged: `# MB, ${SESSIONS} sessions`,
      floor: { at: 'most', value: 300 },
    },
  ],
  async open(bench) {
    const count = bench.scaled(SESSIONS)
    return {
      async ours() {
        await using emulator = await Child.fork('emulator')
        const { url, token } = await emulator.ask('address', Address)
        let left = count
        const create = async (): Promise<void> => {
          while (left-- > 0) await createSession(url, token)
        }
        await Promise.all(Array.from({ length: AT_ONCE }, create))
        await idle(emulator, count)
        return { [NAME]: residentMemory(emulator.pid, 'VmHWM') }
      },
    }
  },
}

async function createSession(url: string, token: string): Promise<void> {
  const { statusCode, body } = await request(`${url}/v1/sessions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      title: 'Bench',
      metadata: { order: '42' },
      input: { text: 'think Hmm\nwrite outputs/report.txt some text\nsay Hello' },
    }),
  })
  const text = await body.text()
  if (statusCode !== 201) throw new Error(`a session was answered ${statusCode}: ${text}`)
}

async function idle(emulator: Child, count: number): Promise<void> {
  const limit = performance.now() + PATIENCE
  for (;;) {
    const counts = await emulator.ask('sessions', Counts)
    if (counts.idle === count && counts.all === count) return
    if (performance.now() > limit) throw new Error(`${counts.idle} of ${count} sessions are idle`)
    await pause(50)
  }
}
