import { describe, expect, it } from 'vitest'
import { ServiceError } from '../../src/core/errors.ts'
import { StoreError } from '../../src/core/store-error.ts'
import { frame, refused, streamWorld, transient } from './stream-world.ts'

describe('following the stream', () => {
  it('commits what came with its cursor, and resumes there', async () => {
    const world = streamWorld()
    await world.start()
    expect(world.last().cursor).toBe('0')
    world.last().send(frame(1) + frame(2))
    await world.clock.settle()
    expect([await world.seqs(), await world.cursor(), world.stream.status().lastSeq]).toEqual([
      ['1', '2'],
      '2',
      '2',
    ])
    world.last().break()
    await world.clock.advance(5000)
    expect(world.connections.map(({ cursor }) => cursor)).toEqual(['0', '2'])
  })

  it('starts live without a cursor, and requests a sweep, since no frame reports earlier events', async () => {
    const world = streamWorld({ startFrom: 'now' })
    await world.start()
    expect(world.last().cursor).toBeNull()
    expect(world.batches.flatMap(({ hints }) => hints ?? [])).toMatchObject([
      { sessionId: null, scope: 'turns' },
    ])
    world.last().send(frame(41))
    await world.clock.settle()
    expect(await world.cursor()).toBe('41')
  })

  it('starts at the given seq', async () => {
    const world = streamWorld({ startFrom: { seq: '17' } })
    await world.start()
    expect(world.last().cursor).toBe('17')
  })

  it('shows one outage while it tries again and again', async () => {
    const world = streamWorld()
    await world.start()
    world.last().send(frame(1))
    await world.clock.settle()
    const live = world.stream.status().since
    await world.clock.advance(1000)
    world.refuse = () => refused(503, 'unavailable')
    world.last().break()
    const seen = new Set<string>()
    for (let second = 0; second < 300; second++) {
      await world.clock.advance(1000)
      const { state, since } = world.stream.status()
      seen.add(`${state} ${since > live}`)
    }
    const { since } = world.stream.status()
    expect(world.clock.now() - since).toBeGreaterThan(290_000)
    expect(seen).toEqual(new Set(['waiting true']))
    world.refuse = () => null
    await world.clock.advance(120_000)
    world.last().send(frame(2))
    await world.clock.settle()
    expect(world.stream.status()).toMatchObject({ state: 'live' })
    expect(world.stream.status().since).toBeGreaterThan(since + 300_000)
  })

  // [fault stream-4]
  it('passes transient frames on and stores nothing of them', async () => {
    const world = streamWorld()
    await world.start()
    world.last().send(frame(1) + transient('a') + transient('b'))
    await world.clock.settle()
    expect(world.transients.map(({ type, sessionId }) => [type, sessionId])).toEqual([
      ['agent.text', 'ses_1'],
      ['agent.text', 'ses_1'],
    ])
    expect([await world.seqs(), await world.cursor()]).toEqual([['1'], '1'])
  })

  // [fault stream-13]
  it('stores an event whose name it does not know', async () => {
    const world = streamWorld()
    await world.start()
    world.last().send(frame(1, 'garden.watered'))
    await world.clock.settle()
    expect((await world.store.read.facts({ limit: 1, order: 'asc' })).rows).toMatchObject([
      { type: 'garden.watered', seq: '1' },
    ])
  })

  // [fault stream-14]
  it('keeps a frame that cannot be read in quarantine, and its cursor moves on', async () => {
    const world = streamWorld()
    const kept: object[] = []
    const { quarantine } = world.store.settings
    world.store.settings.quarantine = (entry) => {
      kept.push(entry)
      return quarantine(entry)
    }
    await world.start()
    world.last().send(`${frame(1)}id: 2\ndata: {"half":\n\n${frame(3)}id: 4\ndata: [1]\n\n`)
    await world.clock.settle()
    expect(kept).toMatchObject([
      { source: 'stream', reason: 'data is not JSON', bytes: '{"half":' },
      { source: 'stream', reason: 'data is not an object', bytes: '[1]' },
    ])
    expect([await world.seqs(), await world.cursor()]).toEqual([['1', '3'], '4'])
    // Each is counted, and one line reports both: a service that sends many must not fill the disk.
    expect(world.quarantined()).toBe(2)
    const lines = world.log.lines.filter(({ message }) => message.includes('cannot be read'))
    expect(lines.map(({ level }) => level)).toEqual(['error'])
  })

  // [fault stream-11]
  it('keeps the cursor at the highest seq when frames come twice or backwards', async () => {
    const world = streamWorld()
    await world.start()
    for (const seq of [3, 1, 2, 3, 1]) world.last().send(frame(seq))
    await world.clock.settle()
    expect([await world.seqs(), await world.cursor()]).toEqual([['3', '1', '2'], '3'])
  })

  // [fault stream-12]
  it('keeps an `id:` that is no number, and goes on from it', async () => {
    const world = streamWorld()
    await world.start()
    for (const id of ['a-1', 'a-10'])
      world.last().send(`id: ${id}\ndata: {"type":"agent.message","session_id":"ses_1"}\n\n`)
    await world.clock.settle()
    world.last().end()
    await world.clock.advance(60_000)
    expect(await world.seqs()).toEqual(['a-1', 'a-10'])
    expect(world.last().cursor).toBe('a-10')
  })

  it('keeps every digit of a seq beyond 2^53', async () => {
    const world = streamWorld()
    await world.start()
    world.last().send(frame('9007199254740993') + frame('9007199254740992'))
    await world.clock.settle()
    expect(await world.cursor()).toBe('9007199254740993')
    expect(await world.seqs()).toEqual(['9007199254740993', '9007199254740992'])
  })

  // [fault stream-2]
  it('accepts frames from before the cursor again, logs it once, and delivers none twice', async () => {
    const world = streamWorld()
    await world.start()
    world.last().send([1, 2, 3].map((seq) => frame(seq)).join(''))
    await world.clock.settle()
    world.last().end()
    await world.clock.advance(60_000)
    world.last().send([1, 2, 3, 4].map((seq) => frame(seq)).join(''))
    await world.clock.settle()
    expect([await world.seqs(), await world.cursor()]).toEqual([['1', '2', '3', '4'], '4'])
    expect(world.log.lines.filter(({ message }) => message.includes('before the cursor'))).toHaveLength(1)
  })

  it('asks for one reading of a session, however many of its frames come together', async () => {
    const world = streamWorld()
    await world.start()
    world.last().send(Array.from({ length: 200 }, (_, index) => frame(index + 1)).join(''))
    await world.clock.settle()
    const hints = world.batches.flatMap(({ hints }) => hints ?? [])
    expect(hints.filter(({ sessionId }) => sessionId !== null)).toHaveLength(1)
  })

  it('asks for a sweep on each connection, except those that continue a stopped replay', async () => {
    const world = streamWorld()
    const sweeps = () =>
      world.batches.flatMap(({ hints }) => hints ?? []).filter(({ sessionId }) => sessionId === null)
    await world.start()
    world.last().send(`${frame(10)}event: replay.stopped\ndata: {"from_seq":10}\n\n`)
    await world.clock.settle()
    expect([world.connections.length, sweeps().length]).toEqual([2, 1])
    world.last().break()
    await world.clock.advance(5000)
    expect([world.connections.length, sweeps().length]).toEqual([3, 2])
  })
})

describe('reconnecting', () => {
  it.each([0, 1, 2, 3, 5, 8])('ends when it is stopped, %i promises after it began', async (turns) => {
    const world = streamWorld({ startFrom: 'now' })
    world.stream.start()
    for (let turn = 0; turn < turns; turn++) await Promise.resolve()
    let stopped = false
    void world.stream.stop(10_000).then(() => (stopped = true))
    await world.clock.settle()
    expect([stopped, world.stream.status().state]).toEqual([true, 'disabled'])
  })

  // [fault stream-6]
  it.each([
    ['absent', null, 5000],
    ['2000', 'retry: 2000\n\n', 2000],
    ['8000', 'retry: 8000\n\n', 8000],
    ['10^12', 'retry: 1000000000000\n\n', 60_000],
    ['no number', 'retry: soon\n\n', 5000],
  ])('after a close waits for a retry of %s, at most a minute', async (_, hint, wait) => {
    const world = streamWorld()
    await world.start()
    world.last().send(frame(1))
    if (hint !== null) world.last().send(hint)
    await world.clock.settle()
    world.last().end()
    await world.clock.advance(wait - 1)
    expect(world.connections).toHaveLength(1)
    await world.clock.advance(1)
    expect(world.connections).toHaveLength(2)
  })

  // [fault stream-6]
  it('never reconnects without a wait, for any answer of the service', async () => {
    const world = streamWorld()
    await world.start()
    for (let round = 0; round < 20; round++) {
      world.last().send('retry: 0\n\n')
      world.last().end()
      await world.clock.settle()
    }
    await world.clock.advance(10_000)
    expect(world.connections.length).toBeLessThan(15)
  })

  it('after failures backs off to a minute, and starts anew once something was committed', async () => {
    const world = streamWorld()
    await world.start()
    const waits: (number | null)[] = []
    for (let round = 0; round < 9; round++) {
      world.last().send('retry: 0\n\n')
      world.last().break()
      await world.clock.settle()
      waits.push(world.clock.next)
      await world.clock.advance(world.clock.next ?? 0)
    }
    expect(waits.slice(3)).toEqual([8000, 16_000, 32_000, 60_000, 60_000, 60_000])
    world.last().send(frame(1))
    await world.clock.settle()
    world.last().break()
    await world.clock.settle()
    expect(world.clock.next).toBeLessThanOrEqual(5000)
  })

  // [fault stream-5]
  it('after the service closed the connection of a slow reader continues at the last commit', async () => {
    const world = streamWorld()
    await world.start()
    world.last().send(frame(1))
    await world.clock.settle()
    const { commit } = world
    const { promise: disk, resolve: written } = Promise.withResolvers<void>()
    world.commit = async (batch) => {
      await disk
      return await commit(batch)
    }
    const first = world.last()
    const body = 'x'.repeat(1024 * 1024)
    for (let seq = 2; seq <= 12; seq++) first.send(frame(seq, 'agent.message', { payload: { body } }))
    await world.clock.settle()
    // It stops reading at four of the eight that the service keeps for it.
    expect(first.taken).toBeLessThan(8)
    first.break()
    world.commit = commit
    written()
    await world.clock.advance(10_000)
    expect(world.connections).toHaveLength(2)
    expect(world.last().cursor).toBe(await world.cursor())
    for (let seq = 1 + Number(world.last().cursor); seq <= 12; seq++) world.last().send(frame(seq))
    await world.clock.settle()
    expect(await world.seqs()).toEqual(Array.from({ length: 12 }, (_, index) => String(index + 1)))
  })

  // [fault stream-10]
  it('after a line without end continues at the last commit, and counts the cut', async () => {
    const world = streamWorld()
    await world.start()
    world.last().send(`${frame(1)}data: `)
    for (let mebibyte = 0; mebibyte < 260; mebibyte++) world.last().send('x'.repeat(1024 * 1024))
    await world.clock.advance(10_000)
    expect(world.reasons).toEqual(['other'])
    expect(world.stream.status().lastError).toBeNull()
    expect([world.connections.length, world.last().cursor]).toEqual([2, '1'])
  })

  // [fault stream-10]
  it('is not needed for a frame that is too large: its beginning is kept in quarantine, and the cursor advances past it', async () => {
    const world = streamWorld()
    const kept: { bytes: string }[] = []
    const { quarantine } = world.store.settings
    world.store.settings.quarantine = (entry) => {
      kept.push(entry)
      return quarantine(entry)
    }
    await world.start()
    world.last().send(`${frame(1)}id: 2\nevent: agent.message\ndata: {"text":"`)
    for (let mebibyte = 0; mebibyte < 18; mebibyte++) world.last().send('x'.repeat(1024 * 1024))
    world.last().send(`"}\n\n${frame(3)}`)
    await world.clock.advance(10_000)
    expect(world.reasons).toEqual([])
    expect([await world.seqs(), await world.cursor()]).toEqual([['1', '3'], '3'])
    expect(kept.map(({ bytes }) => bytes.slice(0, 12))).toEqual(['{"text":"xxx'])
  })

  // [fault stream-15]
  it('waits as long as a refusal of the stream says', async () => {
    const world = streamWorld()
    world.refusals.push(refused(429, 'rate_limit_exceeded', 90_000))
    await world.start()
    await world.clock.advance(89_999)
    expect(world.connections).toHaveLength(0)
    await world.clock.advance(1)
    expect(world.connections).toHaveLength(1)
    expect(world.reasons).toEqual(['rate_limit_exceeded'])
  })

  // [fault stream-7]
  it('treats a silence of 45 s as a dead connection', async () => {
    const world = streamWorld()
    await world.start()
    const first = world.last()
    await world.clock.advance(44_000)
    expect(first.signal.aborted).toBe(false)
    await world.clock.advance(6000)
    expect(first.signal.aborted).toBe(true)
    expect(world.reasons).toEqual(['timeout'])
  })

  // [fault stream-8]
  it('treats a stream with only pings as alive', async () => {
    const world = streamWorld()
    await world.start()
    for (let minute = 0; minute < 40; minute++) {
      world.last().send(': ping\n\n')
      await world.clock.advance(15_000)
    }
    expect(world.connections).toHaveLength(1)
    expect(world.stream.connected()).toBe(true)
  })

  // [fault auth-1]
  it('stops while the token is rejected, and continues as soon as it is accepted', async () => {
    const world = streamWorld()
    await world.start()
    world.authorized = false
    world.setAuthorized(false)
    await world.clock.settle()
    expect(world.stream.status()).toMatchObject({ state: 'stopped', lastError: 'the token was rejected' })
    await world.clock.advance(3_600_000)
    expect(world.connections).toHaveLength(1)
    expect(world.stream.status()).toMatchObject({ state: 'stopped', lastError: 'the token was rejected' })
    world.authorized = true
    world.setAuthorized(true)
    await world.clock.settle()
    expect(world.connections).toHaveLength(2)
  })
})

describe('a replay that stops', () => {
  const stop = (seq: number) => `event: replay.stopped\ndata: {"from_seq":${seq}}\n\n`

  // [fault stream-3]
  it('several times in a row is continued at once each time, and never counts as live', async () => {
    const world = streamWorld()
    await world.start()
    for (const seq of [10, 20, 30]) {
      world.last().send(frame(seq) + stop(seq))
      await world.clock.settle()
    }
    world.last().send(frame(31))
    await world.clock.settle()
    expect(world.connections.map(({ cursor }) => cursor)).toEqual(['0', '10', '20', '30'])
    expect(world.reasons).toEqual(['replay_stop', 'replay_stop', 'replay_stop'])
    expect(await world.cursor()).toBe('31')
  })

  // 1,500 frames in windows of 200 took 50 s and 21 refused opens.
  it('with a single slot is refused once, and waits for the slot from then on', async () => {
    const { world, refusals, readOn } = singleSlot()
    await world.start()
    const began = world.clock.steady()
    for (let from = 0; from < 1500; from += 200) {
      await readOn(from)
      const frames = Array.from({ length: Math.min(200, 1500 - from) }, (_, index) => frame(from + index + 1))
      world.last().send(frames.join('') + (from + 200 < 1500 ? stop(from + 200) : ''))
      await world.clock.settle()
    }
    expect(await world.cursor()).toBe('1500')
    expect(refusals()).toBe(1)
    expect(world.reasons).toEqual([
      'replay_stop',
      'rate_limit_exceeded',
      ...Array.from({ length: 6 }, () => 'replay_stop'),
    ])
    // Seven times five seconds, in which the service holds the slot of the last connection.
    expect(world.clock.steady() - began).toBeLessThanOrEqual(35_100)
  })

  // A single slot and 600 old frames in windows of 200: each refused open began again at the first frame.
  it('without a cursor yet, goes on after a refused open, not again from the beginning', async () => {
    const { world, refusals, readOn } = singleSlot({ startFrom: 'now' })
    await world.start()
    world.last().send('retry: 1\n\n')
    await world.clock.settle()
    world.last().break()
    for (const from of [0, 200, 400]) {
      await readOn(from)
      const frames = Array.from({ length: 200 }, (_, index) => frame(from + index + 1))
      world.last().send(frames.join('') + stop(from + 200))
      await world.clock.settle()
    }
    await readOn(600)
    expect(refusals()).toBe(1)
    expect(world.connections.map(({ cursor }) => cursor)).toEqual([null, '0', '200', '400', '600'])
    expect(await world.seqs()).toEqual([])
  })

  it('retries at once in the next series of windows, when a slot may be free', async () => {
    const { world, refusals, readOn } = singleSlot()
    await world.start()
    world.last().send(frame(10) + stop(10))
    await world.clock.settle()
    await readOn(10)
    world.last().send(frame(11))
    world.last().end()
    await world.clock.settle()
    await readOn(11)
    world.last().send(frame(20) + stop(20))
    await world.clock.settle()
    expect(refusals()).toBe(2)
  })

  // With a single slot and connections that break in mid-replay, each next window was refused once more.
  it('waits for the slot also after a connection broke in the middle of a window', async () => {
    const { world, refusals, readOn } = singleSlot()
    await world.start()
    world.last().send(frame(10) + stop(10))
    await world.clock.settle()
    await readOn(10)
    world.last().send(frame(11))
    await world.clock.settle()
    world.last().break()
    await readOn(11)
    world.last().send(frame(20) + stop(20))
    await readOn(20)
    expect(refusals()).toBe(1)
    expect(world.reasons).toEqual(['replay_stop', 'rate_limit_exceeded', 'reset', 'replay_stop'])
  })

  // A list route had been refused for its rate: each later stop in the row waited 5 s, though slots were free.
  it('is continued at once also after the rate budget refused an open that was never sent', async () => {
    const world = streamWorld()
    await world.start()
    const details = { status: 429, code: 'rate_limit_exceeded', message: 'the budget', retryAfter: 2000 }
    world.refusals.push(new ServiceError({ ...details, unsent: true }))
    world.last().send(frame(10) + stop(10))
    await world.clock.advance(10_000)
    expect(world.last().cursor).toBe('10')
    world.last().send(frame(20) + stop(20))
    await world.clock.settle()
    expect(world.last().cursor).toBe('20')
    expect(world.reasons).toEqual(['replay_stop', 'rate_limit_exceeded', 'replay_stop'])
  })

  // Six refusals in a row, and the next wait was 43 s, although the budget said 5 s.
  it('is continued when the rate budget has room, however often it had none', async () => {
    const world = streamWorld()
    await world.start()
    const details = { status: 429, code: 'rate_limit_exceeded', message: 'the budget', retryAfter: 5000 }
    for (let nth = 0; nth < 6; nth++) world.refusals.push(new ServiceError({ ...details, unsent: true }))
    world.last().send(frame(10) + stop(10))
    await world.clock.advance(29_000)
    expect(world.last().cursor).toBe('0')
    await world.clock.advance(2000)
    expect(world.last().cursor).toBe('10')
  })

  it('continues at the seq that it names, if that is before the cursor', async () => {
    const world = streamWorld()
    await world.start()
    world.last().send(frame(10) + stop(7))
    await world.clock.settle()
    expect(world.last().cursor).toBe('7')
  })

  it('does not go back before the beginning: older frames were never ours', async () => {
    const world = streamWorld({ startFrom: 'now' })
    await world.start()
    world.last().send(frame(10) + frame(11) + stop(7))
    await world.clock.settle()
    expect(world.last().cursor).toBe('10')
  })

  it('delivers no older frames, though a service repeats them afterwards', async () => {
    const world = streamWorld({ startFrom: 'now' })
    await world.start()
    world.last().send(frame(10) + frame(11))
    await world.clock.settle()
    world.last().send(frame(8) + frame(10) + frame(12))
    await world.clock.settle()
    expect([await world.seqs(), await world.cursor()]).toEqual([['10', '11', '12'], '12'])
  })

  it('where it began waits, so that it does not repeat forever', async () => {
    const world = streamWorld()
    await world.start()
    world.last().send(stop(0))
    await world.clock.settle()
    expect(world.connections).toHaveLength(1)
    await world.clock.advance(5000)
    expect(world.connections).toHaveLength(2)
  })
})

describe('without a cursor yet, a connection that ends before its first frame', () => {
  // [fault stream-2]
  it('loses nothing: the next replays from the beginning and keeps the new frames', async () => {
    const world = streamWorld({ startFrom: 'now' })
    await world.start()
    expect(world.last().cursor).toBeNull()
    world.last().break()
    await world.clock.advance(5000)
    expect(world.last().cursor).toBe('0')
    world.createdAt.set('ses_new', world.clock.now())
    const fresh = { session_id: 'ses_new' }
    world.last().send(frame(1) + frame(2) + frame(3, 'user.message', fresh) + frame(4) + frame(5, 'x', fresh))
    await world.clock.settle()
    expect([await world.seqs(), await world.cursor()]).toEqual([['3', '4', '5'], '5'])
  })

  it('continues past a session that cannot be read, if the fault is permanent', async () => {
    const world = streamWorld({ startFrom: 'now' })
    await world.start()
    world.createdAt.set('ses_new', world.clock.now() + 1000)
    world.unreadable.set('ses_bad', refused(200, 'malformed_answer'))
    const replay = frame(1, 'x', { session_id: 'ses_bad' }) + frame(2, 'x', { session_id: 'ses_new' })
    for (let connection = 0; connection < 5; connection++) {
      world.last().break()
      await connectedAgain(world)
      world.last().send(replay)
      await world.clock.settle()
    }
    expect(await world.seqs()).toEqual(['2'])
    expect(world.log.lines.filter(({ message }) => message.includes('counts as old'))).toHaveLength(1)
  })

  it('keeps what was made a moment before: the clock of the service is known to a second', async () => {
    const world = streamWorld({ startFrom: 'now' })
    world.createdAt.set('ses_moment', world.clock.now() - 1000)
    world.createdAt.set('ses_old', world.clock.now() - 2000)
    await world.start()
    world.last().break()
    await world.clock.advance(5000)
    world.last().send(frame(1, 'x', { session_id: 'ses_old' }) + frame(2, 'x', { session_id: 'ses_moment' }))
    await world.clock.settle()
    expect(await world.seqs()).toEqual(['2'])
  })

  it('distinguishes new frames from old ones by the clock of the service, which answers only later', async () => {
    const world = streamWorld({ startFrom: 'now' })
    world.offset = null
    await world.start()
    world.last().break()
    await world.clock.advance(5000)
    world.offset = 3_600_000
    const there = world.clock.now() + 3_600_000
    world.createdAt.set('ses_old', there - 10_000).set('ses_new', there - 1000)
    world.last().send(frame(1, 'x', { session_id: 'ses_old' }) + frame(2, 'x', { session_id: 'ses_new' }))
    await world.clock.settle()
    expect(await world.seqs()).toEqual(['2'])
  })

  const old = { session_id: 'ses_old' }
  const text = transient('a')
  const ping = ': ping\n\n'

  /** A replay from the beginning, for want of a cursor. */
  async function replaying() {
    const world = streamWorld({ startFrom: 'now' })
    await world.start()
    world.last().break()
    await world.clock.advance(5000)
    world.batches.length = 0
    return world
  }

  it('requests a read of the sessions whose frames it drops', async () => {
    const world = await replaying()
    world.last().send(frame(1, 'turn.started', old))
    await world.clock.settle()
    expect(await world.seqs()).toEqual([])
    expect(world.batches.flatMap(({ hints }) => hints?.map(({ sessionId }) => sessionId))).toEqual([
      'ses_old',
    ])
  })

  it.each([
    ['a transient frame', [frame(1), text, frame(2, 'x', old)]],
    ['a transient frame, which came with it', [frame(1) + text + frame(2, 'x', old)]],
    ['a transient frame, where nothing was replayed', [text, frame(2, 'x', old)]],
    ['two pings', [frame(1), ping, ping, frame(2, 'x', old)]],
  ])('treats frames after %s as live', async (_, parts) => {
    const world = await replaying()
    for (const part of parts) {
      world.last().send(part)
      await world.clock.settle()
    }
    expect(await world.seqs()).toEqual(['2'])
  })

  it.each([
    ['a pause', [frame(1), frame(2, 'x', old)]],
    ['a ping', [frame(1), ping, frame(2, 'x', old), ping, frame(3, 'x', old)]],
    ['pings before it begins', [ping, ping, ping, frame(1, 'x', old)]],
    ['comments that are no pings', [frame(1), ': hello\n\n', ': hello\n\n', frame(2, 'x', old)]],
    [
      'a greeting that names no session',
      ['event: stream.hello\ndata: {"type":"stream.hello","seq":null}\n\n', frame(1, 'x', old)],
    ],
  ])('does not treat a replay as ended after %s, however long it takes', async (_, parts) => {
    const world = await replaying()
    for (const part of parts) {
      world.last().send(part)
      await world.clock.settle()
      await world.clock.advance(20_000)
    }
    expect(await world.seqs()).toEqual([])
  })
})

/** Fails unless it follows the stream again within two minutes. */
async function connectedAgain({ clock, stream }: ReturnType<typeof streamWorld>): Promise<void> {
  await clock.advance(1000)
  for (let second = 0; second < 120 && !stream.connected(); second++) await clock.advance(1000)
  expect(stream.connected()).toBe(true)
}

describe('a cursor that the service refuses', () => {
  // [fault stream-2]
  it.each([400, 404, 410])(
    'with %s is an alarm: live frames go on and every session is read anew',
    async (status) => {
      const world = streamWorld()
      await world.start()
      world.last().send(frame(5))
      await world.clock.settle()
      world.refuse = (cursor) => (cursor === null ? null : refused(status, 'cursor_unknown'))
      world.batches.length = 0
      world.last().end()
      await connectedAgain(world)
      expect(world.last().cursor).toBeNull()
      const code = 'cursor_unknown'
      expect(world.reasons).toEqual(['closed', code, code, code, 'cursor_lost'])
      expect(
        world.log.lines.some(
          ({ level, message }) => level === 'error' && message.includes('refused the cursor'),
        ),
      ).toBe(true)
      expect(
        world.batches.flatMap(({ hints }) => hints ?? []).filter(({ sessionId }) => sessionId === null),
      ).not.toEqual([])
    },
  )

  it('while the disk is full does not end the stream for good', async () => {
    const world = streamWorld()
    await world.start()
    world.last().send(frame(5))
    await world.clock.settle()
    const { setCheckpoint } = world.store.settings
    world.store.settings.setCheckpoint = () => Promise.reject(new StoreError('full'))
    world.refuse = (cursor) => (cursor === null ? null : refused(410, 'cursor_gone'))
    world.last().end()
    await world.clock.advance(120_000)
    expect(world.stream.connected()).toBe(false)
    world.store.settings.setCheckpoint = setCheckpoint
    await connectedAgain(world)
    expect(world.last().cursor).toBeNull()
  })

  // [fault stream-2]
  it.each([400, 404, 410])(
    'by a %s that refuses every stream is kept: a proxy before the service may have answered',
    async (status) => {
      const world = streamWorld()
      await world.start()
      world.last().send(frame(5))
      await world.clock.settle()
      world.refuse = () => refused(status, `http_${status}`)
      world.last().end()
      await world.clock.advance(600_000)
      expect(world.reasons.length).toBeGreaterThan(5)
      expect(world.reasons).not.toContain('cursor_lost')
      world.refuse = () => null
      await connectedAgain(world)
      expect(world.last().cursor).toBe('5')
    },
  )

  it('is kept if it is refused, examined, and then accepted', async () => {
    const world = streamWorld()
    await world.start()
    world.last().send(frame(5))
    await world.clock.settle()
    const three = [1, 2, 3].map(() => refused(404, 'http_404'))
    world.refusals.push(...three)
    world.last().end()
    await connectedAgain(world)
    expect(world.last().cursor).toBe('5')
  })
})

describe('a store that cannot be written', () => {
  // [fault stream-1]
  it('breaks the connection, and the cursor never passes what was not committed', async () => {
    const world = streamWorld()
    await world.start()
    world.last().send(frame(1))
    await world.clock.settle()
    const { commit } = world
    const { promise: full, reject } = Promise.withResolvers<never>()
    world.commit = () => full
    world.last().send(frame(2))
    await world.clock.settle()
    // These come while the write that will fail is under way; then there is room again.
    world.last().send(frame(3) + frame(4))
    await world.clock.settle()
    world.commit = commit
    reject(new StoreError('full'))
    await world.clock.settle()
    expect([await world.seqs(), await world.cursor()]).toEqual([['1'], '1'])
    await world.clock.advance(60_000)
    expect(world.last().cursor).toBe('1')
  })

  it('and cannot be read either, does not end the stream for good', async () => {
    const world = streamWorld()
    await world.start()
    const { checkpoint } = world.store.settings
    world.store.settings.checkpoint = () => Promise.reject(new Error('disk I/O error'))
    world.last().end()
    await world.clock.advance(10_000)
    expect(world.connections).toHaveLength(1)
    world.store.settings.checkpoint = checkpoint
    await world.clock.advance(10_000)
    expect(world.stream.connected()).toBe(true)
    expect(world.connections).toHaveLength(2)
  })
})

/** A service that has one stream slot, which it frees 4.5 s after the client is gone, and asks for 5 s. */
function singleSlot(options: Parameters<typeof streamWorld>[0] = {}) {
  const world = streamWorld(options)
  let refusals = 0
  let freeAt = -Infinity
  world.refuse = () => {
    if (world.clock.steady() < freeAt) {
      refusals++
      return refused(429, 'rate_limit_exceeded', 5000)
    }
    freeAt = Infinity
    queueMicrotask(() =>
      world
        .last()
        .signal.addEventListener('abort', () => (freeAt = world.clock.steady() + 4500), { once: true }),
    )
    return null
  }
  return {
    world,
    refusals: () => refusals,
    /** Until it is open from `seq`. */
    async readOn(seq: number): Promise<void> {
      for (let waited = 0; world.last().cursor !== String(seq); waited += 100) {
        if (waited > 60_000) throw new Error(`it was never opened from ${seq}`)
        await world.clock.advance(100)
      }
    },
  }
}
