import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'pg'
import { expect, test } from 'vitest'
import { cli, start } from '../cli/process.ts'
import { FULL } from '../support/full.ts'
import { assertWhole } from '../support/oracle.ts'
import { createDatabase } from '../support/postgres.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

test.runIf(FULL)(
  'a sidecar with a backlog, dead letters and a call under way moves to PostgreSQL and back, and loses nothing',
  async () => {
    await using rig = await Rig.open({
      process: true,
      tools: { lookup_order: { timeout: '30s' } },
      config: { store: { url: '' } },
      start: false,
    })
    const file = `sqlite:${path.join(rig.folder, 'sidecar.db')}`
    rig.config.store = { url: file }
    await rig.start()
    const dead = await rig.client.start('say first')
    await rig.event('turn.settled', ({ session_id }) => session_id === dead)
    rig.app.handle = ({ events }) =>
      events[0]?.type === 'agent.message' ? { body: '{"verdict":"dead"}' } : { status: 503 }
    rig.app.run = () => ({ hang: true })
    const held = await rig.client.start('call lookup_order {"order_id":"1"}', 'say {{last}}')
    const others = await Promise.all([1, 2, 3].map((number) => rig.client.start(`say ${number}`)))
    await until('a run of the tool', () => rig.app.runs.length === 1)
    const pending = () => rig.list('/api/deliveries?status=pending')
    await until('a backlog', async () => (await pending()).length > 20)
    await rig.kill()

    const database = await createDatabase()
    const copied = await cli(['store', 'copy', '--from', file, '--to', database, '--json'])
    expect(copied).toMatchObject({ code: 0, err: '' })
    expect(JSON.parse(copied.out)).toMatchObject({ continued: false })
    rig.config.store = { url: database }
    await rig.start()
    rig.app.handle = () => ({})
    rig.app.run = () => ({ body: 'found' })
    const slow = 60_000
    await until(
      'an answered call',
      async () => (await rig.list('/api/calls')).every(({ ended_at }) => ended_at !== null),
      slow,
    )
    await rig.client.reached(held, 'idle')
    for (const id of others) await rig.event('turn.settled', ({ session_id }) => session_id === id)
    const [run, again] = rig.app.runs
    expect([run?.call.uncertain, again?.call.uncertain]).toEqual([false, true])
    const letters = await rig.list('/api/deliveries?status=dead')
    await rig.admin('POST', '/api/deliveries/retry', { status: 'dead' })
    await until('no dead letter', async () => (await rig.list('/api/deliveries?status=dead')).length === 0)
    await assertWhole(rig, { tools: ['lookup_order'] })
    const facts = await rig.count('facts')
    await rig.stop()

    const back = `sqlite:${path.join(rig.folder, 'back.db')}`
    expect(await cli(['store', 'copy', '--from', database, '--to', back])).toMatchObject({ code: 0 })
    rig.config.store = { url: back }
    expect(await rig.count('facts')).toBe(facts)
    await rig.start()
    const last = await rig.client.start('say last')
    await rig.event('turn.settled', ({ session_id }) => session_id === last)
    await assertWhole(rig, { tools: ['lookup_order'] })
    expect(letters.length).toBeLessThan(20)
  },
  240_000,
)

test.runIf(FULL)(
  'a copy that is killed again and again is continued, and no sidecar starts with it before it is whole',
  async () => {
    await using rig = await Rig.open({ process: true })
    for (let number = 0; number < 10; number++) await rig.client.start(`say ${number}`)
    await until('facts', async () => (await rig.count('facts')) > 30)
    const from = String(rig.config.store?.url)
    const database = await createDatabase()
    const command = ['store', 'copy', '--from', from, '--to', database, '--json']
    expect(await cli(command)).toMatchObject({
      code: 1,
      err: `error: store: ${from.slice('sqlite:'.length)} is in use by another sidecar\n  fix: stop it first, or use another store (store.url)\n`,
    })
    await rig.stop()
    const db = new Client({ connectionString: database })
    await db.connect()
    const begun = async (): Promise<boolean> =>
      (await db.query("SELECT to_regclass('sidecar.unfinished_copy')::text AS one")).rows[0]?.one !== null
    let cut = 0
    for (let times = 0; times < 3; times++) {
      const copying = start(command)
      await until('a copy', begun)
      await pause(times * 20)
      copying.process.kill('SIGKILL')
      if ((await copying.ended).code === null && (await begun())) cut++
    }
    await db.end()
    expect(cut).toBeGreaterThan(0)
    rig.config.store = { url: database }
    await expect(rig.start()).rejects.toThrow('the database holds a copy that is not complete')
    expect(await cli(command)).toMatchObject({ code: 0 })
    await rig.start()
    const last = await rig.client.start('say last')
    await rig.event('turn.settled', ({ session_id }) => session_id === last)
    await assertWhole(rig)
  },
  240_000,
)
