import { expect, test } from 'vitest'
import { Hub, type Reader } from '../../src/sidecar/admin/relay/hub.ts'
import type { RelayFrame } from '../../src/sidecar/admin/relay/frame.ts'
import { inOrder } from '../../src/sidecar/admin/relay/order.ts'
import { VirtualClock } from '../support/clock.ts'
import { frameFact } from './seed.ts'

const MEBIBYTE = 1024 * 1024

class FakeReader implements Reader {
  readonly sessionId: string | null
  readonly transient: boolean
  readonly writes: Buffer[] = []
  behind = 0
  whyCut: string | null = null

  constructor(options: { sessionId?: string; transient?: boolean } = {}) {
    this.sessionId = options.sessionId ?? null
    this.transient = options.transient ?? true
  }

  unread = () => this.behind
  write = (bytes: Buffer) => void this.writes.push(bytes)
  cut = (reason: string) => void (this.whyCut = reason)
  get text(): string {
    return Buffer.concat(this.writes).toString()
  }
}

function frame(seq: number | null, text: string, sessionId = 's-a'): RelayFrame {
  const place = seq === null ? null : { pos: seq, seq: String(seq) }
  return { place, sessionId, bytes: Buffer.from(text) }
}

function open(readers: readonly Reader[]): { hub: Hub; clock: VirtualClock } {
  const clock = new VirtualClock()
  const hub = new Hub(clock, () => undefined)
  for (const reader of readers) {
    hub.add(reader)
    hub.join(reader, null)
  }
  return { hub, clock }
}

test('readers with the same selection get the same bytes, encoded once', async () => {
  const readers = Array.from({ length: 500 }, () => new FakeReader())
  const { hub, clock } = open(readers)
  hub.publish(frame(1, 'one'))
  hub.publish(frame(2, 'two'))
  await clock.advance(100)
  const [first] = readers
  expect(first?.text).toBe('onetwo')
  expect(readers.every(({ writes }) => writes.length === 1 && writes[0] === first?.writes[0])).toBe(true)
})

test('a reader with more than 1 MiB unread gets no transient frames; other readers do', async () => {
  const [slow, quick] = [new FakeReader(), new FakeReader()]
  const { hub, clock } = open([slow, quick])
  slow.behind = MEBIBYTE + 1
  hub.publish(frame(null, 'transient'))
  hub.publish(frame(1, 'persisted'))
  await clock.advance(100)
  expect([slow.text, quick.text]).toEqual(['persisted', 'transientpersisted'])
  slow.behind = 0
  hub.publish(frame(null, 'again'))
  await clock.advance(100)
  expect(slow.text).toBe('persistedagain')
})

test('a reader with more than 8 MiB unread is cut, and nothing more is written to it', async () => {
  const [slow, quick] = [new FakeReader(), new FakeReader()]
  const { hub, clock } = open([slow, quick])
  slow.behind = 8 * MEBIBYTE
  hub.publish(frame(1, 'a'))
  await clock.advance(100)
  expect([slow.text, slow.whyCut]).toEqual(['a', null])
  slow.behind = 8 * MEBIBYTE + 1
  hub.publish(frame(2, 'b'))
  await clock.advance(100)
  expect([slow.text, slow.whyCut]).toEqual(['a', '8388609 bytes behind'])
  expect(quick.text).toBe('ab')
})

test('a comment goes out every 15 s, and no timer is left when the last reader has gone', async () => {
  const reader = new FakeReader()
  const { hub, clock } = open([reader])
  await clock.advance(14_999)
  expect(reader.text).toBe('')
  await clock.advance(30_001)
  expect(reader.text).toBe(': ping\n\n'.repeat(3))
  hub.leave(reader)
  expect(clock.waiting).toBe(0)
})

test('a reader that joins gets no frame again that it has from the log, by position or by seq', async () => {
  const [byPlace, bySeq] = [new FakeReader(), new FakeReader()]
  const { hub, clock } = open([])
  for (const reader of [byPlace, bySeq]) hub.add(reader)
  hub.join(byPlace, { pos: 2, seq: '2' })
  hub.join(bySeq, { pos: 0, seq: '3' })
  for (const seq of [1, 2, 3, 4]) hub.publish(frame(seq, String(seq)))
  await clock.advance(100)
  hub.publish(frame(5, '5'))
  await clock.advance(100)
  expect([byPlace.text, bySeq.text]).toEqual(['345', '45'])
})

test('what was published before a reader joined is not sent to it', async () => {
  const [early, late] = [new FakeReader(), new FakeReader()]
  const { hub, clock } = open([early])
  hub.publish(frame(1, 'one'))
  hub.add(late)
  hub.join(late, null)
  hub.publish(frame(2, 'two'))
  await clock.advance(100)
  expect([early.text, late.text]).toEqual(['onetwo', 'two'])
})

test('nothing is encoded without a reader', () => {
  const { hub } = open([])
  let encoded = 0
  hub.publish({
    place: { pos: 1, seq: '1' },
    sessionId: null,
    get bytes() {
      encoded++
      return Buffer.from('x')
    },
  })
  expect([encoded, hub.lastPos]).toEqual([0, 1])
})

test('frames do not wait for long when they are large', () => {
  const reader = new FakeReader()
  const { hub } = open([reader])
  hub.publish(frame(1, 'x'.repeat(512 * 1024)))
  expect(reader.writes).toHaveLength(1)
})

function eventOf(body: string, sessionId: string | null, after: string | null) {
  return { id: 'evt_t_0_0', type: 'agent.text', sessionId, body: `"${body}"`, at: 1, after }
}

/** A hub with a reader, and what is published to it. */
function readHub() {
  const published: RelayFrame[] = []
  const order = inOrder({ size: 1, publish: (one) => published.push(one), pass: () => undefined })
  return {
    published: () =>
      published.map(({ place, bytes }) => place?.seq ?? bytes.toString().match(/data: "(\w+)"/)?.[1] ?? '?'),
    transient: (body: string, after: string | null) => order.transient(eventOf(body, null, after)),
    shared: (body: string, sessionId: string, after: string) => order.shared(eventOf(body, sessionId, after)),
    added: (seq: string) => order.factsAdded([{ ...frameFact(seq, 's-a'), pos: Number(seq) }]),
    /** `seqs` are new; `cursor`: the last of the batch. */
    durable: (seqs: readonly string[], cursor: string) => {
      order.factsAdded(seqs.map((seq) => ({ ...frameFact(seq, 's-a'), pos: Number(seq) })))
      order.cursorMoved(cursor)
    },
  }
}

// With several replicas, each commit is read from the log: a transient frame may come between the frame and its cursor.
test('transient frames stay in their order while the frame before them is read from the log', () => {
  const { published, transient, added } = readHub()
  transient('a', '10')
  added('10')
  transient('b', '10')
  expect(published()).toEqual(['10', 'a', 'b'])
})

test('a late transient frame of another process is left out where its session has a newer frame', () => {
  const { published, shared, durable } = readHub()
  durable(['3', '4'], '4')
  shared('late', 's-a', '3')
  shared('other', 's-b', '3')
  shared('next', 's-a', '4')
  expect(published()).toEqual(['3', '4', 'other', 'next'])
})

test('a transient frame waits until what came before it is durable', () => {
  const { published, transient, durable } = readHub()
  transient('a', null)
  transient('b', '9')
  transient('c', '10')
  expect(published()).toEqual(['a'])
  durable(['9', '10'], '10')
  expect(published()).toEqual(['a', '9', 'b', '10', 'c'])
  transient('d', '10')
  expect(published()).toEqual(['a', '9', 'b', '10', 'c', 'd'])
})

test('a repeated frame delays no transient frame', () => {
  const { published, transient, durable } = readHub()
  transient('a', '1')
  durable([], '1')
  expect(published()).toEqual(['a'])
})

test('at most a thousand transient frames wait for the disk', () => {
  const { published, transient, durable } = readHub()
  for (let count = 0; count < 1500; count++) transient('a', '1')
  durable([], '1')
  expect(published()).toHaveLength(1000)
})

test('nothing is encoded or held without a reader, and the last position is known', () => {
  const published: RelayFrame[] = []
  let last = 0
  const order = inOrder({ size: 0, publish: (one) => published.push(one), pass: (pos) => void (last = pos) })
  order.transient({ id: 'evt_t_0_0', type: 'agent.text', sessionId: null, body: '{}', at: 1, after: '7' })
  order.factsAdded([{ ...frameFact('7', 's-a'), pos: 3 }])
  expect([published, last]).toEqual([[], 3])
})
