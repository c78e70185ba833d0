import type { ServerResponse } from 'node:http'
import type { Subscriber } from '../../../core/bus.ts'
import type { ShardTopics } from '../../../core/shards.ts'
import { messageOf } from '../../../std/errors.ts'
import type { Observer, RelayOutcome } from '../../../core/observer.ts'
import type { Clock, Log } from '../../../std/ports.ts'
import type { StoreReader } from '../../../core/store-reader.ts'
import { Problem } from '../problem.ts'
import { createFollower } from './follow.ts'
import { OPENING } from './frame.ts'
import { Hub } from './hub.ts'
import { inOrder } from './order.ts'
import { answerReader } from './reader.ts'
import { replay, type PacedReader } from './replay.ts'

/** The most concurrent readers. */
export const READERS = 1000
/** Seconds after which a refused reader may try again. */
const ASK_AGAIN = '5'

export interface Subscription {
  /** null: the frames of every session. */
  sessionId: string | null
  /** Digits; null: live frames only. */
  cursor: string | null
  transient: boolean
}

export type RelayObserver = Pick<Observer, 'relayReaders' | 'relayFrames' | 'relayEnded'>

/** Serves the service's event streams from our log: any number of readers costs the service one stream. */
export interface Relay
  extends
    Required<Pick<Subscriber, 'factsAdded' | 'cursorMoved' | 'transient'>>,
    Pick<ShardTopics, 'woken' | 'missed' | 'population' | 'transientShared'> {
  /** Called before the response begins. @throws {Problem} when every slot is taken. */
  checkRoom(): void
  /** Streams into a response whose head is sent. */
  open(subscription: Subscription, response: ServerResponse): void
  /** Ends every stream. */
  close(): void
}

export function createRelay(options: {
  /** Called only when a reader needs the log. */
  store: () => Pick<StoreReader, 'placeOf' | 'frames' | 'facts'>
  clock: Clock
  log: Log
  observer: RelayObserver
}): Relay {
  const { clock, log, observer } = options
  const hub = new Hub(clock, (count) => observer.relayFrames('live', count))
  const order = inOrder(hub)
  const others = createFollower({ hub, store: options.store, publish: order.factsAdded, log })
  const answers = new Set<ServerResponse>()
  let closing = false

  const begin = (
    reader: PacedReader,
    cursor: string | null,
    response: ServerResponse,
    end: (outcome: RelayOutcome) => void,
  ): void => {
    if (cursor === null) return hub.join(reader, null)
    const onSent = (count: number): void => observer.relayFrames('replay', count)
    replay({ hub, clock, store: options.store(), onSent }, reader, cursor).then(
      (how) => {
        if (how === 'limit') end('replay_limit')
      },
      (error: unknown) => {
        end('failed')
        log.error({ err: messageOf(error) }, 'relay: the log could not be read')
        response.destroy()
      },
    )
  }

  return {
    transient: order.transient,
    factsAdded(facts) {
      const [first] = facts
      if (!others.shared) order.factsAdded(facts)
      else if (first !== undefined) void others.look(first.pos - 1)
    },
    cursorMoved(cursor) {
      if (others.shared) void others.look().then(() => order.cursorMoved(cursor))
      else order.cursorMoved(cursor)
    },
    woken({ topics }) {
      if (topics.has('facts') && others.shared) void others.look()
    },
    missed: others.share,
    population: others.population,
    transientShared(event) {
      order.shared(event)
      if (!order.waits) return
      // The frames before it are in the log, and may not have been read here.
      others.share()
      void others.look().then(order.release)
    },
    checkRoom() {
      if (answers.size < READERS) return
      observer.relayEnded('refused')
      throw new Problem('rate_limit_exceeded', `${READERS} streams are open, which is the limit`, {
        headers: { 'retry-after': ASK_AGAIN },
      })
    },
    open({ sessionId, cursor, transient }, response) {
      let outcome: RelayOutcome = 'left'
      const onCut = (reason: string): void => {
        outcome = 'slow'
        log.warn({ reason }, 'relay: a slow reader was cut')
      }
      const reader = answerReader(response, { sessionId, transient, onCut })
      answers.add(response)
      observer.relayReaders(answers.size)
      hub.add(reader)
      // A client that disconnects during a write is not an error.
      response.on('error', () => undefined)
      response.once('close', () => {
        answers.delete(response)
        hub.leave(reader)
        observer.relayReaders(answers.size)
        observer.relayEnded(closing && outcome === 'left' ? 'stopped' : outcome)
      })
      reader.write(OPENING)
      if (!others.shared) return begin(reader, cursor, response, (how) => (outcome = how))
      // From here on, no frame of another process is missed.
      void others.look().then(() => begin(reader, cursor, response, (how) => (outcome = how)))
    },
    close() {
      closing = true
      for (const response of answers) response.end()
    },
  }
}
