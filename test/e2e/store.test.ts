import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { assertWhole } from '../support/oracle.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

test('a database that another program locks is shown by status and probe, and nothing is lost', async () => {
  await using rig = await Rig.open({ process: true, channels: ['stream', 'poll'] })
  const state = async () => (await rig.admin('GET', '/api/status'))['store']
  expect(await state()).toMatchObject({ state: 'accepting', reason: null })
  const other = new Database(path.join(rig.folder, 'sidecar.db'))
  try {
    other.exec('BEGIN IMMEDIATE')
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
    other.exec('ROLLBACK')
  } finally {
    other.close()
  }
  await rig.event('turn.settled')
  await assertWhole(rig)
  expect(await state()).toMatchObject({ state: 'accepting' })
})
