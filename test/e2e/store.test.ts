import { expect, test } from 'vitest'
import { createSidecar } from '../../src/index.ts'
import { cli } from '../cli/process.ts'
import { assertWhole } from '../support/oracle.ts'
import { configFile, outside } from '../support/outside.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

test('a database that another program locks is shown by status and probe, and nothing is lost', async () => {
  await using rig = await Rig.open({ process: true, channels: ['stream', 'poll'] })
  const state = async () => (await rig.admin('GET', '/api/status'))['store']
  // A process that comes to a stop for seconds in its first transaction, on a busy machine, begins it again.
  await expect.poll(state).toMatchObject({ state: 'accepting', reason: null })
  {
    await using _lock = await outside(rig).lock()
    await rig.client.start('say Hello')
    await until('a refused write', async () => {
      const store = await state()
      return (store as { reason: unknown }).reason === 'busy'
    })
    const { status, body } = await rig.raw('GET', '/readyz?verbose')
    expect([status, body['text']]).toEqual([
      200,
      expect.stringContaining('[+] store ok: it refuses writes (busy)\n'),
    ])
  }
  await rig.event('turn.settled')
  await assertWhole(rig)
  await expect.poll(state).toMatchObject({ state: 'accepting' })
})

test('a library reports a lost store after its start', async () => {
  await using rig = await Rig.open({ start: false })
  const silent = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent }
  const sidecar = await createSidecar({ config: rig.config, log: silent })
  await sidecar.start()
  const reason = await outside(rig).lose()
  expect((await sidecar.failed).message).toContain(reason)
  await sidecar.stop()
  expect(await cli(['store', 'check', '-c', await configFile(rig)])).toMatchObject({ code: 0 })
})

test('a process that loses its store ends with 1 and says why, and the next one loses no fact', async () => {
  await using rig = await Rig.open({ process: true })
  await rig.client.start('say Hello')
  await rig.event('turn.settled')
  const { program } = rig
  if (program === null) throw new Error('no sidecar runs')
  const reason = await outside(rig).lose()
  const later = await rig.client.start('say more')
  expect(await program.ended()).toBe(1)
  expect(program.lines.at(-1)?.message).toContain('error: store: ')
  expect(program.lines.at(-1)?.message).toContain(reason)
  rig.program = null
  await rig.start()
  await rig.event('turn.settled', ({ session_id }) => session_id === later)
  await assertWhole(rig)
})
