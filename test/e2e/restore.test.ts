import { describe, expect, test } from 'vitest'
import { cli } from '../cli/process.ts'
import { PROFILES } from './engines.ts'
import { assertWhole } from '../support/oracle.ts'
import { configFile, outside } from '../support/outside.ts'
import { Rig } from '../support/rig.ts'
import { openTables } from '../support/tables.ts'
import { until } from '../support/until.ts'

describe.for(PROFILES)('an old backup (%s)', (details) => {
  test('an old backup is restored: the cursor rewinds, and repeated facts keep their ids', async () => {
    await using rig = await Rig.open({ details, process: true, tools: { lookup_order: {} } })
    const before = await rig.client.start('call lookup_order {"order_id":"1"}', 'say {{last}}')
    await rig.client.reached(before, 'idle')
    const restore = await outside(rig).backUp()

    const after = await rig.client.start('call lookup_order {"order_id":"2"}', 'say {{last}}')
    await rig.client.reached(after, 'idle')
    await assertWhole(rig, { tools: ['lookup_order'] })
    await rig.kill()

    await restore()
    expect(await cli(['store', 'check', '-c', await configFile(rig)])).toMatchObject({ code: 0 })
    await rig.start()
    const third = await rig.client.start('say once more')
    await rig.client.reached(third, 'idle')
    // The oracle knows the service's truth: everything is there, and nothing under a second id.
    await assertWhole(rig, { tools: ['lookup_order'], restored: true })
    expect(rig.app.runs).toHaveLength(2)
  })

  // Found by reading: its lane was claimed again and again, and nothing else ever got its turn.
  test('a fact that is damaged while it is pending, alone in its lane, is a dead letter, and everything else continues', async () => {
    await using rig = await Rig.open({
      details,
      process: true,
      handlers: (app) => [{ name: 'app', url: app.handlerUrl('app'), events: ['turn.settled'] }],
    })
    rig.app.handle = () => ({ status: 503 })
    await rig.client.start('say one')
    const pending = (): Promise<unknown[]> => rig.list('/api/deliveries?status=pending')
    await until('a pending delivery', async () => (await pending()).length === 1)
    await rig.kill()
    const tables = await openTables(String(rig.config.store?.url))
    const changed = await tables.change(
      "UPDATE facts SET body = replace(body, 'completed', 'complete?') WHERE type = 'turn.settled'",
    )
    await tables.close()
    expect(changed).toBe(1)

    rig.app.handle = () => ({})
    await rig.start()
    const other = await rig.client.start('say two')
    await rig.event('turn.settled', ({ session_id }) => session_id === other)
    await until('no pending delivery', async () => (await pending()).length === 0)
    const dead = await rig.list('/api/deliveries?status=dead')
    expect(dead).toMatchObject([{ type: 'turn.settled' }])
    // The kill may come after the answer of the first attempt, which is then listed before.
    const [{ attempts } = {}] = dead
    expect((attempts as unknown[]).at(-1)).toMatchObject({ error: 'damaged in the store' })
  })
})
