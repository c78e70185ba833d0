import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import {
  alteredDefinitions,
  knownMigrations,
  migrate,
  versionOf,
} from '../../src/sidecar/store/sqlite/schema.ts'
import { deliveryWorld } from '../deliver/world.ts'
import { toolWorld } from '../tools/world.ts'
import { everything, folder, openStore } from './database.ts'

const RELEASED = 10
const HANDLERS = [everything('app'), everything('audit', { ordered: false }), everything('gone')]

/**
 * The store of a sidecar 0.1.0 that was killed, its last commits in the log alone. Facts with the seqs 1 to 3 and a state fact in
 * ses_1, 4 and 5 in ses_2, 6 in ses_3, and `call.answered` in ses_1. Of the handler `app`, 1 is delivered, 2 failed once and waits a minute, 4 is
 * dead, and an attempt of 6 was under way; the unordered `audit` has two; `gone` is paused. Five calls: received, running,
 * finished, deferred, answered. Hints, a subscription, a frame that is held.
 */
function released(name: 'version-0.1.0' | 'schema-7' = 'version-0.1.0'): string {
  const path = join(folder(), 'sidecar.db')
  for (const side of ['', '-wal']) {
    const packed = readFileSync(join(import.meta.dirname, name, `${name}.db${side}.gz`))
    writeFileSync(path + side, gunzipSync(packed))
  }
  return path
}

describe('a store that version 0.1.0 wrote', () => {
  it('is brought to the newest schema, as if it had been written by it', async () => {
    const path = released()
    const { store } = await openStore({ path }, HANDLERS)
    await store.close()
    const db = new Database(path)
    expect([versionOf(db), alteredDefinitions(db)]).toEqual([knownMigrations().length, []])
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
    db.close()
  })

  it('has its backlog delivered in order, each session for itself, and its dead letters when they are retried', async () => {
    const world = await deliveryWorld({ path: released() })
    await world.clock.advance(59_000)
    const early = world.sent.map(({ sessionId, seq, attempt }) => `${sessionId} ${seq} ${attempt}`)
    expect(early.toSorted()).toEqual(['ses_2 5 1', 'ses_3 6 2'])
    await world.clock.advance(10_000)
    const waited = world.sent.filter(({ sessionId }) => sessionId === 'ses_1')
    expect(waited.map(({ seq, attempt }) => [seq, attempt])).toEqual([
      ['2', 2],
      ['3', 1],
      [null, 1],
      [null, 1],
    ])
    expect(await world.counts()).toMatchObject({ pending: 0, dead: 1 })
    expect(await world.store.operator.retry({})).toEqual({ count: 1 })
    world.worker.reload()
    await world.clock.advance(5000)
    expect(world.sent.at(-1)).toMatchObject({ sessionId: 'ses_2', seq: '4' })
    expect(await world.counts()).toMatchObject({ pending: 0, dead: 0 })
  })

  it('keeps what the other handlers wait for, the attempts so far, and the pause', async () => {
    const { store } = await openStore({ path: released() }, HANDLERS)
    const { deliveries, heldFrames } = await store.read.counts()
    expect(deliveries).toMatchObject({ audit: { pending: 6, dead: 0 }, gone: { pending: 8, dead: 0 } })
    expect(heldFrames).toBe(1)
    expect((await store.read.handlers()).map(({ name, pauseReason }) => [name, pauseReason])).toEqual([
      ['app', null],
      ['audit', null],
      ['gone', 'the handler answered 410'],
    ])
    const { rows } = await store.read.deliveries({
      limit: 9,
      handler: 'app',
      status: 'pending',
      sessionId: 'ses_1',
    })
    const failed = rows.filter(({ attempts }) => attempts.length > 0)
    expect(failed).toMatchObject([{ attempts: [{ status: 503 }], lastAnswer: 'busy' }])
    const cut = (await store.read.deliveries({ limit: 9, handler: 'app', sessionId: 'ses_3' })).rows
    expect(cut[0]?.attempts).toMatchObject([{ error: 'the sidecar stopped before an answer' }])
    expect(await store.lanes.claim({ handler: 'audit', lanes: 10 })).toHaveLength(6)
  })

  it('has its calls run or answered, each once', async () => {
    const world = toolWorld({ path: released() })
    for (const id of ['call_received', 'call_running', 'call_finished', 'call_deferred'])
      world.service.waiting.add(id)
    world.host.start()
    await world.clock.advance(60_000)
    const runs = world.runs.map(({ callId, uncertain }) => `${callId} ${uncertain}`)
    expect(runs.toSorted()).toEqual(['call_received false', 'call_running true'])
    expect(world.service.answers.map(({ callId }) => callId).toSorted()).toEqual([
      'call_finished',
      'call_received',
      'call_running',
    ])
    expect(await world.store.calls.get('call_deferred')).toMatchObject({ state: 'running', deferred: true })
    expect(await world.store.calls.get('call_answered')).toMatchObject({ state: 'answered' })
  })

  it('has its sessions read, and keeps what was known and reported of them', async () => {
    const { store, clock } = await openStore({ path: released() }, HANDLERS)
    await clock.advance(1000)
    const hints = await store.hints.claim(10)
    expect(hints.map(({ sessionId }) => sessionId)).toEqual(expect.arrayContaining(['ses_1', 'ses_2', null]))
    expect(await store.resources.known('ses_1')).toMatchObject({
      session: { status: 'requires_action' },
      revision: 1,
    })
    expect((await store.resources.owners(['ses_9'])).get('ses_9')?.owner).toBe('foreign')
    expect(await store.settings.checkpoint('stream')).toBe('7')
    expect(await store.settings.subscriptions()).toMatchObject([{ id: 'wh_1', secret: 'whsec_1' }])
  })
})

describe('an upgrade', () => {
  // A migration that fails is what a process that is killed in it leaves: SQLite rolls both back alike.
  it('that is interrupted leaves the old version, and the next start makes it', () => {
    const db = new Database(released('schema-7'))
    const before = versionOf(db)
    expect(before).toBeLessThan(RELEASED - 1)
    db.exec('CREATE TABLE begun (pos)')
    expect(() => migrate(db)).toThrow('already exists')
    expect(versionOf(db)).toBe(before)
    expect(db.prepare("SELECT name FROM sqlite_schema WHERE name = 'owner'").all()).toEqual([])
    db.exec('DROP TABLE begun')
    migrate(db)
    expect([versionOf(db), alteredDefinitions(db)]).toEqual([knownMigrations().length, []])
    db.close()
  })
})
