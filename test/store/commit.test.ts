import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, vi } from 'vitest'
import { transition } from '../../src/core/call-machine.ts'
import { transcriptType } from '../../src/core/fact.ts'
import { StoreError } from '../../src/core/store-error.ts'
import { frameFact, turnFact } from '../support/fact.ts'
import { lookupCall } from './call.ts'
import { everything, folder, openStore } from './database.ts'
import { it } from './engines.ts'

const idsOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id)
const all = { limit: 1000, order: 'asc' } as const

/** A call as it is stored while its tool runs. */
const runningCall = (callId: string) => {
  const call = lookupCall(callId)
  return transition(call, { type: 'run_begun', at: 1 }) ?? call
}

describe('a commit', () => {
  it('that moves a checkpoint from another value than the stored one is not stored, nothing of it', async () => {
    const { store } = await openStore()
    const move = async (seq: number, from: string | null) => {
      const checkpoint = { name: 'items/ses_1', from, to: String(seq) }
      const { facts, stale } = await store.log.commit({ facts: [frameFact(seq)], checkpoint })
      return [facts.length, stale, await store.settings.checkpoint('items/ses_1')]
    }
    expect(await move(1, '0')).toEqual([0, ['items/ses_1'], null])
    expect(await move(2, null)).toEqual([1, [], '2'])
    expect(await move(3, null)).toEqual([0, ['items/ses_1'], '2'])
    expect(await move(4, '1')).toEqual([0, ['items/ses_1'], '2'])
    expect(await move(5, '2')).toEqual([1, [], '5'])
    await store.settings.setCheckpoint('items/ses_1', null)
    expect(await move(6, null)).toEqual([1, [], '6'])
  })

  it('shares one transaction with those that arrive together, and each promise is its own', async () => {
    let commits = 0
    const { store } = await openStore({ onCommit: () => commits++ })
    commits = 0
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, index) => store.log.commit({ facts: [frameFact(index + 1)] })),
    )
    expect(commits).toBe(1)
    expect(results.map(({ facts }) => facts[0]?.seq)).toEqual(
      Array.from({ length: 50 }, (_, i) => String(i + 1)),
    )
  })

  it.file(
    'of a call is made in the same turn of the event loop; directly after another commit, in the next',
    async () => {
      const { store, clock } = await openStore({ path: join(folder(), 'sidecar.db') })
      await clock.advance(1)
      const turns: (string | undefined)[] = []
      vi.spyOn(clock, 'soon').mockImplementation((run, turn) => {
        turns.push(turn)
        queueMicrotask(run)
      })
      await store.log.commit({ newCalls: [runningCall('one')] })
      await store.log.commit({ newCalls: [runningCall('two')] })
      await clock.advance(1)
      const result = { kind: 'output', text: '42' } as const
      const event = { type: 'result_fixed', result, error: null, at: 2 } as const
      await store.log.commit({ calls: [{ callId: 'one', event }] })
      expect(turns).toEqual(['same', undefined, 'same'])
      expect(await store.calls.get('one')).toMatchObject({ result })
    },
  )

  it('that is invalid does not fail the others', async () => {
    const { store } = await openStore()
    const [before, bad, after] = await Promise.allSettled([
      store.log.commit({ facts: [frameFact(1)], cursor: '1' }),
      store.log.commit({ facts: [frameFact(2), frameFact(3, 'ses_1', { at: 0.5 })], cursor: '3' }),
      store.log.commit({ facts: [frameFact(4)] }),
    ])
    expect([before.status, bad.status, after.status]).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect((await store.read.facts(all)).rows.map(({ seq }) => seq)).toEqual(['1', '4'])
    expect(await store.settings.checkpoint('stream')).toBe('1')
    expect(await store.read.counts()).toMatchObject({ deliveries: { app: { pending: 2 } } })
  })

  // Each write waited for it in turn, five seconds, in which nothing else was done in this process.
  it('waits no longer than the shortest wait of those that share it', async () => {
    const { store, clock } = await openStore()
    const written: string[] = []
    void store.log.commit({ facts: [frameFact(1)] }, 50).then(() => written.push('patient'))
    await clock.advance(2)
    void store.log.commit({ facts: [frameFact(2)] }, 1).then(() => written.push('less patient'))
    expect(written).toEqual([])
    await clock.advance(2)
    await expect.poll(() => written).toEqual(['patient', 'less patient'])
  })

  it.file('waits for another program that holds the database, and lets others go on meanwhile', async () => {
    const path = join(folder(), 'sidecar.db')
    const { store, clock } = await openStore({ path })
    const other = new Database(path)
    other.exec('BEGIN IMMEDIATE')
    const written: number[] = []
    const begun = performance.now()
    const writes = Array.from({ length: 20 }, (_, index) =>
      store.log.commit({ facts: [frameFact(index + 1)] }).then(() => void written.push(index)),
    )
    await clock.advance(4000)
    expect(written).toEqual([])
    expect(performance.now() - begun).toBeLessThan(4000)
    other.exec('ROLLBACK')
    other.close()
    await clock.advance(100)
    await Promise.all(writes)
    expect(written).toEqual(Array.from({ length: 20 }, (_, index) => index))
  })

  it.file(
    'is refused after five seconds in which another program held the database, as all that wait',
    async () => {
      const path = join(folder(), 'sidecar.db')
      const refused: unknown[] = []
      const { store, clock } = await openStore({ path, onRefused: (error) => refused.push(error) })
      const other = new Database(path)
      onTestFinished(() => void other.close())
      other.exec('BEGIN IMMEDIATE')
      const writes = Promise.allSettled([1, 2, 3].map((seq) => store.log.commit({ facts: [frameFact(seq)] })))
      await clock.advance(5100)
      for (const write of await writes)
        expect(write).toMatchObject({ status: 'rejected', reason: { name: 'StoreError', kind: 'busy' } })
      expect(refused).toMatchObject([{ kind: 'busy' }, { kind: 'busy' }, { kind: 'busy' }])
      // What is left is the check of the files.
      expect(clock.waiting).toBe(1)
    },
  )

  it.file('that was refused counts as none', async () => {
    let commits = 0
    const { store } = await openStore({ onCommit: () => commits++, maxPages: 60 })
    commits = 0
    const body = 'x'.repeat(100_000)
    const outcomes: string[] = []
    for (let seq = 1; seq < 10; seq++) {
      const [{ status }] = await Promise.allSettled([
        store.log.commit({ facts: [frameFact(seq, 'ses_1', { body })] }),
      ])
      outcomes.push(status)
    }
    expect(outcomes).toContain('rejected')
    expect(commits).toBe(outcomes.filter((status) => status === 'fulfilled').length)
  })

  it('stores a fact once, for any number of simultaneous reports', async () => {
    const { store } = await openStore()
    const results = await Promise.all(
      Array.from({ length: 20 }, () =>
        store.log.commit({ facts: [frameFact(1), turnFact('turn.settled', 'trn_1')] }),
      ),
    )
    expect(results.map(({ facts }) => facts.length)).toEqual([2, ...Array.from({ length: 19 }, () => 0)])
    const again = await store.log.commit({ facts: [frameFact(1)] })
    expect(again).toMatchObject({ facts: [], lanes: [] })
    expect((await store.read.facts(all)).rows).toHaveLength(2)
    expect(await store.read.counts()).toMatchObject({ deliveries: { app: { pending: 2 } } })
  })

  it('of 50 frames, some repeated in it and some stored before, delivers each once and in order', async () => {
    const { store } = await openStore()
    await store.log.commit({ facts: [3, 18, 19].map((seq) => frameFact(seq)) })
    const seqs = Array.from({ length: 50 }, (_, index) => (index % 17 === 16 ? index : index + 1))
    const { facts, lanes } = await store.log.commit({ facts: seqs.map((seq) => frameFact(seq)) })
    const expected = [...new Set(seqs)].filter((seq) => ![3, 18, 19].includes(seq)).map(String)
    expect(facts.map(({ seq }) => seq)).toEqual(expected)
    const { rows } = await store.read.facts(all)
    expect(rows.slice(3).map(({ pos, seq }) => [pos, seq])).toEqual(facts.map(({ pos, seq }) => [pos, seq]))
    const [extended] = lanes
    expect(extended?.deliveries.map(({ fact }) => fact.pos)).toEqual(facts.map(({ pos }) => pos))
    expect(await store.read.counts()).toMatchObject({ deliveries: { app: { pending: rows.length } } })
  })

  it('never moves the cursor back, also above 2^53', async () => {
    const { store } = await openStore()
    const cursors = ['5', '3', '9007199254740993', '9007199254740992', '18446744073709551617', '7']
    const kept: (string | null)[] = []
    for (const cursor of cursors) {
      await store.log.commit({ cursor })
      kept.push(await store.settings.checkpoint('stream'))
    }
    expect(kept).toEqual([
      '5',
      '5',
      '9007199254740993',
      '9007199254740993',
      '18446744073709551617',
      '18446744073709551617',
    ])
  })

  // [fault stream-12]
  it('keeps the digits of a seq, and distinguishes two that are one double', async () => {
    const { store } = await openStore()
    await store.log.commit({ facts: [frameFact('9007199254740992'), frameFact('9007199254740993')] })
    expect((await store.read.facts(all)).rows.map(({ seq }) => seq)).toEqual([
      '9007199254740992',
      '9007199254740993',
    ])
  })

  it('fans a fact out to each handler that selects its type, and to no other', async () => {
    const { store } = await openStore({}, [
      everything('all'),
      everything('turns', { events: ['turn.*'] }),
      everything('none', { events: [] }),
    ])
    const { lanes } = await store.log.commit({
      facts: [frameFact(1), turnFact('turn.completed', 'trn_1'), frameFact(2, 'ses_2')],
    })
    expect(
      lanes.map(({ lane, claimed, deliveries }) => [lane.handler, lane.key, claimed, deliveries.length]),
    ).toEqual([
      ['all', 'ses_1', true, 2],
      ['all', 'ses_2', true, 1],
      ['turns', 'ses_1', true, 1],
    ])
  })

  it('gives an unordered handler a lane a fact', async () => {
    const { store } = await openStore({}, [everything('app', { ordered: false })])
    const { lanes } = await store.log.commit({ facts: [frameFact(1), frameFact(2)] })
    expect(lanes.map(({ lane }) => lane.key)).toEqual([frameFact(1).id, frameFact(2).id])
  })

  it('starts a handler that was not known before with no backlog', async () => {
    const { store } = await openStore()
    await store.log.commit({ facts: [frameFact(1)] })
    await store.settings.registerHandlers([everything('app'), everything('late')])
    await store.log.commit({ facts: [frameFact(2)] })
    expect(await store.read.counts()).toMatchObject({
      deliveries: { app: { pending: 2 }, late: { pending: 1 } },
    })
  })

  it('is refused once the store is closed', async () => {
    const { store } = await openStore()
    await store.close()
    await expect(store.log.commit({ cursor: '1' })).rejects.toMatchObject({ kind: 'closed' })
  })

  it('that was asked for before the store closes is written', async () => {
    const path = join(folder(), 'sidecar.db')
    const { store } = await openStore({ path })
    const written = store.log.commit({ facts: [frameFact(1)] })
    await store.close()
    await written
    const again = await openStore({ path })
    expect((await again.store.read.facts(all)).rows).toHaveLength(1)
  })
})

describe('a full disk', () => {
  const large = (seq: number) => frameFact(seq, 'ses_1', { body: 'x'.repeat(8000) })

  // [fault stream-1] [fault process-6]
  it.file('refuses the whole commit, keeps the cursor, and continues when there is space', async () => {
    const path = join(folder(), 'sidecar.db')
    const { store } = await openStore({ path, maxPages: 100 })
    let seq = 0
    let refused: unknown = null
    while (refused === null && seq < 1000) {
      seq++
      await store.log.commit({ facts: [large(seq)], cursor: String(seq) }).catch((error: unknown) => {
        refused = error
      })
    }
    expect(refused).toBeInstanceOf(StoreError)
    expect(refused).toMatchObject({ kind: 'full' })
    const kept = seq - 1
    const pair = [large(seq), large(seq + 1)]
    await expect(store.log.commit({ facts: pair, cursor: String(seq + 1) })).rejects.toMatchObject({
      kind: 'full',
    })
    expect(await store.settings.checkpoint('stream')).toBe(String(kept))
    expect((await store.read.facts(all)).rows).toHaveLength(kept)
    expect(await store.read.counts()).toMatchObject({ deliveries: { app: { pending: kept } } })
    await store.close()

    const roomy = await openStore({ path, maxPages: 1000 })
    const { facts } = await roomy.store.log.commit({ facts: pair, cursor: String(seq + 1) })
    expect(facts).toHaveLength(2)
    expect(await roomy.store.settings.checkpoint('stream')).toBe(String(seq + 1))
  })

  it.file('takes facts again after pruning made room', async () => {
    const { store } = await openStore({ maxPages: 100 }, [])
    let seq = 0
    const fill = async () => {
      for (;;) await store.log.commit({ facts: [large(++seq)] })
    }
    await expect(fill()).rejects.toMatchObject({ kind: 'full' })
    expect((await store.log.prune(-1)).facts).toBeGreaterThan(10)
    await expect(store.log.commit({ facts: [large(++seq)] })).resolves.toMatchObject({
      facts: [{ seq: String(seq) }],
    })
  })
})

describe('sightings', () => {
  const fact = (seen = {}) => turnFact('turn.completed', 'trn_1', 'ses_1', { seen })
  const hint = (channel: 'stream' | 'webhook', at: number) => ({
    sessionId: 'ses_1',
    channel,
    at,
    scope: 'turns' as const,
    delay: 0,
    subject: 'turn.final/trn_1',
  })

  it('before the fact are on it when it comes', async () => {
    const { store } = await openStore()
    await store.log.commit({ hints: [hint('webhook', 100)] })
    const { facts } = await store.log.commit({ facts: [fact({ stream: 200 })] })
    expect(facts[0]?.seen).toEqual({ webhook: 100, stream: 200 })
  })

  it('after the fact are reported once per channel, and stored with it', async () => {
    const { store } = await openStore()
    const { facts } = await store.log.commit({ facts: [fact({ stream: 200 })] })
    const first = await store.log.commit({ hints: [hint('webhook', 300)] })
    expect(first.sightings).toEqual([
      { channel: 'webhook', type: 'turn.completed', at: 300, factAt: facts[0]?.at },
    ])
    const second = await store.log.commit({ hints: [hint('webhook', 400), hint('stream', 500)] })
    expect(second.sightings).toEqual([])
    const { rows } = await store.read.facts({ limit: 1, order: 'desc' })
    expect(rows[0]?.seen).toEqual({ stream: 200, webhook: 300 })
  })
})

describe('the log', () => {
  it('is read in pages, by type and by session, and a pruned position gives an empty page', async () => {
    const { store } = await openStore()
    await store.log.commit({
      facts: [frameFact(1), frameFact(2, 'ses_2'), turnFact('turn.completed', 'trn_1'), frameFact(3)],
    })
    expect(idsOf((await store.read.facts({ ...all, limit: 2, after: frameFact(1).id })).rows)).toHaveLength(2)
    expect((await store.read.facts({ ...all, sessionId: 'ses_2' })).rows.map(({ seq }) => seq)).toEqual(['2'])
    expect(idsOf((await store.read.facts({ ...all, order: 'desc', type: 'agent.message' })).rows)).toEqual(
      idsOf([frameFact(3), frameFact(2, 'ses_2'), frameFact(1)]),
    )
    expect((await store.read.facts({ ...all, after: 'evt_nowhere' })).rows).toEqual([])
  })

  it('knows a frame that has the name of a state fact under a name of its own', () => {
    expect(transcriptType('turn.started')).toBe('stream.turn.started')
    expect(transcriptType('agent.message')).toBe('agent.message')
  })
})
