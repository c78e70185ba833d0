import { describe, expect, onTestFinished, test } from 'vitest'
import { createRelay, type Relay } from '../../src/sidecar/admin/relay/relay.ts'
import { createClient, type StreamEvent } from '../../src/client/index.ts'
import { PROFILES } from '../support/client.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'
import { EventReader, type Frame } from './event-reader.ts'
import { startAdmin } from './running.ts'
import { clock, memoryLog, relayLedger } from './seed.ts'

describe.for(PROFILES)('clients of the service, pointed at the relay (%s)', (details) => {
  test('a plain parser of event streams reads at the relay what the service sends', async () => {
    await using rig = await Rig.open({ details, config: { stream: { start_from: 'beginning' } } })
    const session = await rig.client.start('say Hello', 'shell ls', 'write outputs/a.txt x')
    await rig.event('turn.settled')
    const { last_seq: last } = rig.emulator.ledger()
    const authorization = { authorization: `Bearer ${rig.client.token.token}` }
    await using direct = await EventReader.open(
      `${rig.emulator.baseUrl}/v1/events?last_event_id=0`,
      authorization,
    )
    await until('all of it', () => direct.ids.includes(String(last)))
    const base = rig.program?.admin ?? ''
    await using relayed = await EventReader.open(`${base}/v1/events?last_event_id=0`)
    await until('all of it', () => relayed.ids.includes(String(last)))
    expect(relayed.frames).toEqual(direct.frames.filter(({ id }) => id !== undefined))

    await using one = await EventReader.open(`${base}/v1/sessions/${session}/events?last_event_id=0`)
    await until('all of it', () => one.ids.includes(String(last)))
    expect(one.frames).toEqual(relayed.frames)
  })

  test('the client of this package follows the organization and one session there', async () => {
    await using rig = await Rig.open({ details })
    const session = await rig.client.create()
    await using client = createClient({ baseUrl: rig.program?.admin ?? '', token: 'any' })
    await using events = await client.events.stream()
    await using own = await client.sessions.events(session)
    const other = await rig.client.create()
    await rig.client.send(other, 'say Other')
    await rig.event('turn.settled', ({ session_id }) => session_id === other)
    await rig.client.send(session, 'say Hello')

    const said: string[] = []
    for await (const event of events) {
      if (event.type === 'agent.message') said.push(String(event.session_id))
      if (event.type === 'turn.ended' && event.session_id === session) break
    }
    expect(said).toEqual([other, session])
    const types: string[] = []
    for await (const event of own) {
      expect(event.session_id).toBe(session)
      types.push(event.type)
      if (event.type === 'turn.ended') break
    }
    expect(types).toContain('agent.message')
  })

  test('both kinds of client see the same live frames at the relay and at the service, transient ones in order', async () => {
    await using rig = await Rig.open({ details })
    const session = await rig.client.create()
    const [direct, relayed] = sidesOf(rig, session)
    await using live = await Watch.open(direct, relayed)
    await rig.client.send(session, 'think Hmm', 'say One', 'say Two', 'say Three')
    await live.until(({ event }) => event === 'turn.ended')
    for (const frames of live.plain) expect(frames).toEqual(live.plain[0])
    for (const events of live.own) expect(events).toEqual(live.own[0])
    const ids = live.plain[0]?.map(({ id }) => id) ?? []
    expect(ids.filter((id) => id === undefined).length).toBeGreaterThan(3)
    expect(live.own[0]?.map(({ seq }) => seq ?? undefined)).toEqual(ids)
    expect(live.retries).toEqual([expect.any(Number), expect.any(Number)])
  })

  test.each(['query', 'header', 'both'])(
    'a cursor in the %s means the same on both, and none means live frames only',
    async (where) => {
      await using rig = await Rig.open({ details, config: { stream: { start_from: 'beginning' } } })
      const session = await rig.client.start('say One', 'say Two', 'write outputs/a.txt x')
      await rig.event('turn.settled')
      const last = String(rig.emulator.ledger().last_seq)
      for (const cursor of ['0', '3', last]) {
        const seen: Frame[][] = []
        for (const side of sidesOf(rig, session)) {
          // A client that reconnects keeps the address that it first asked for: the header counts.
          const query = where === 'header' ? '' : `?last_event_id=${where === 'both' ? 1 : cursor}`
          const headers = where === 'query' ? side.headers : { ...side.headers, 'last-event-id': cursor }
          await using reader = await EventReader.open(`${side.base}/v1/events${query}`, headers)
          await using silent = await EventReader.open(`${side.base}/v1/events`, side.headers)
          await until('both to be open', () => reader.retry !== null && silent.retry !== null)
          if (cursor !== last) await until('the last frame', () => reader.ids.includes(last))
          await using client = createClient({ baseUrl: side.base, token: side.token })
          await using stream = await client.events.stream({ after: cursor })
          const own: (string | null)[] = []
          if (cursor !== last)
            for await (const { seq } of stream) {
              own.push(seq)
              if (seq === last) break
            }
          expect(own).toEqual(reader.ids)
          expect(silent.frames).toEqual([])
          seen.push([...reader.frames])
        }
        expect(seen[1]).toEqual(seen[0])
        expect(seen[0]?.[0]?.id).toBe({ '0': '1', '3': '4' }[cursor])
      }
    },
  )
})

test('a client with the token of the service is refused in the form of the service', async () => {
  const running = await startAdmin({ token: () => 'admin-token', relay: idleRelay() })
  onTestFinished(() => running.stop())
  const cursorWith = async (token: string) => {
    await using client = createClient({ baseUrl: running.base, token })
    await using stream = await client.events.stream()
    return stream.cursor
  }
  await expect(cursorWith('svc_pat_dev')).rejects.toMatchObject({ code: 'unauthorized', status: 401 })
  expect(await cursorWith('admin-token')).toBeNull()
})

function idleRelay(): Relay {
  const store = () => {
    throw new Error('an unexpected replay')
  }
  return createRelay({ store, clock, log: memoryLog(), observer: relayLedger() })
}

interface Side {
  base: string
  token: string
  headers: Record<string, string>
  session: string
  /** Where a plain client reads that session's stream. */
  ofSession: string
}

/** The service and its relay, as clients of the one reach the other: they send the service's token to both. */
function sidesOf(rig: Rig, session: string): [Side, Side] {
  const { token } = rig.client.token
  const side = (base: string, path: string): Side => ({
    base,
    token,
    headers: { authorization: `Bearer ${token}` },
    session,
    ofSession: path.replace('{session_id}', session),
  })
  return [
    side(rig.emulator.baseUrl, rig.client.details.paths.sessionStream),
    side(rig.program?.admin ?? '', '/v1/sessions/{session_id}/events'),
  ]
}

/** A plain reader and our client, on the stream of the organization and on that of a session, at each side. */
class Watch implements AsyncDisposable {
  readonly #open = new AsyncDisposableStack()
  readonly #readers: EventReader[] = []
  readonly #events: StreamEvent[][] = []
  readonly plain: (readonly Frame[])[] = []
  readonly own: (readonly StreamEvent[])[] = []

  static async open(...sides: Side[]): Promise<Watch> {
    const watch = new Watch()
    for (const { base, token, headers, session, ofSession } of sides) {
      for (const path of ['/v1/events', ofSession])
        watch.#readers.push(watch.#open.use(await EventReader.open(base + path, headers)))
      const client = watch.#open.use(createClient({ baseUrl: base, token }))
      for (const stream of [await client.events.stream(), await client.sessions.events(session)]) {
        watch.#open.use(stream)
        const events: StreamEvent[] = []
        watch.#events.push(events)
        void (async () => {
          for await (const event of stream) events.push(event)
        })()
      }
    }
    await until('every reader to be open', () => watch.#readers.every(({ retry }) => retry !== null))
    return watch
  }

  get retries(): (number | null)[] {
    return this.#readers.filter((_, index) => index % 2 === 0).map(({ retry }) => retry)
  }

  /** Waits until everyone has a frame, and keeps what each has up to there. */
  async until(isLast: (frame: Pick<Frame, 'event'>) => boolean): Promise<void> {
    const name = ({ type }: StreamEvent) => ({ event: type })
    await until(
      'the last frame for everyone',
      () =>
        this.#readers.every(({ frames }) => frames.some(isLast)) &&
        this.#events.every((events) => events.map(name).some(isLast)),
    )
    for (const { frames } of this.#readers) this.plain.push(frames.slice(0, frames.findIndex(isLast) + 1))
    for (const events of this.#events) this.own.push(events.slice(0, events.map(name).findIndex(isLast) + 1))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#open.disposeAsync()
  }
}
