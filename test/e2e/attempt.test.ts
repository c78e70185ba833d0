import { expect, test } from 'vitest'
import { cli } from '../cli/process.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

const STOPPED = 'the sidecar stopped before an answer'

/** Attempts that the store knows to be under way. */
const begun = (rig: Rig): Promise<number> => rig.count('begun')

// [fault callback-9]
test(
  'an attempt that a kill cut is shown after the restart, and only raises the number of the next',
  { timeout: 120_000 },
  async () => {
    await using rig = await Rig.open({
      process: true,
      handler: { timeout: '30s', retry: { attempts: 2, base: '10ms', max: '20ms' } },
    })
    rig.app.handle = ({ events: [event] }, nth) =>
      event?.type === 'turn.completed' && nth < 4 ? { hang: true } : {}
    await rig.client.start('say Hello')
    const attempts = (): number[] =>
      rig.app.seen().flatMap(({ type, delivery }) => (type === 'turn.completed' ? [delivery.attempt] : []))
    for (let life = 1; life <= 3; life++) {
      await until(`attempt ${life}`, () => attempts().length === life)
      await until('a row of it', async () => (await begun(rig)) === 1)
      await rig.kill()
      await rig.start()
    }
    await rig.event('turn.settled')
    expect(attempts()).toEqual([1, 2, 3, 4])
    const delivery = await until('its end', async () => {
      const rows = await rig.list('/api/deliveries?status=delivered')
      return rows.find(({ type }) => type === 'turn.completed')
    })
    const cut = { error: STOPPED, ms: 0 }
    expect(delivery['attempts']).toMatchObject([cut, cut, cut, { status: 200 }])
    const { out } = await cli([
      'deliveries',
      'show',
      String(delivery['id']),
      '--url',
      rig.program?.admin ?? '',
    ])
    expect(out.split(STOPPED)).toHaveLength(4)
    await until(
      'nothing pending',
      async () => (await rig.list('/api/deliveries?status=pending')).length === 0,
    )
    await rig.stop()
    expect(await begun(rig)).toBe(0)
  },
)
