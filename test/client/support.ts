import { onTestFinished } from 'vitest'
import { createClient, ServiceError } from '../../src/client/index.ts'
import type {
  Client,
  ClientOptions,
  Clock,
  EventStream,
  Random,
  StreamEvent,
} from '../../src/client/index.ts'
import type { Emulator, EmulatorOptions } from '../../src/emulator/index.ts'
import { systemClock } from '../../src/system/clock.ts'
import { systemRandom } from '../../src/system/random.ts'
import { open, type ProfileName } from '../emulator/support.ts'

export { PROFILES, until, type ProfileName } from '../emulator/support.ts'

/** Attempts follow each other at once: a test does not wait for what chance gives. */
export const NO_JITTER: Random = { ...systemRandom(), next: () => 0 }

export interface Stand {
  client: Client
  emulator: Emulator
}

/** An emulator and a client of it, both ended with the test. */
export async function stand(
  profile: ProfileName = 'a',
  options: EmulatorOptions = {},
  clientOptions: Partial<ClientOptions> = {},
): Promise<Stand> {
  const { emulator } = await open(profile, options)
  const client = createClient({
    baseUrl: emulator.baseUrl,
    token: emulator.token,
    random: NO_JITTER,
    ...clientOptions,
  })
  onTestFinished(() => client.close())
  return { client, emulator }
}

/** What a promise that is to fail failed with. */
export async function faultOf(promise: Promise<unknown>): Promise<ServiceError> {
  try {
    await promise
  } catch (error) {
    if (error instanceof ServiceError) return error
    throw error
  }
  throw new Error('it did not fail')
}

/** Reads events until one has this type, and gives all of them. The stream stays open. */
export async function readUntil(
  events: AsyncIterator<StreamEvent, unknown>,
  wanted: (event: StreamEvent) => boolean,
): Promise<StreamEvent[]> {
  const read: StreamEvent[] = []
  for (;;) {
    const next = await events.next()
    if (next.done === true)
      throw new Error(`the stream ended after ${read.map(({ type }) => type).join(', ')}`)
    read.push(next.value)
    if (wanted(next.value)) return read
  }
}

/** Everything up to the end of a turn. */
export function untilTurnEnds(stream: EventStream): Promise<StreamEvent[]> {
  return readUntil(stream[Symbol.asyncIterator](), ({ type }) => type === 'turn.ended')
}

/** All entries of a list. */
export async function all<T>(list: AsyncIterable<T>): Promise<T[]> {
  const entries: T[] = []
  for await (const entry of list) entries.push(entry)
  return entries
}

/**
 * A steady clock a hundred times as fast as the machine's: 45 s of silence are 450 ms. A connection is given up after
 * 10 s: where a busy machine may need 100 ms for one, the clock is not that fast.
 */
export function quickClock(speed = 100): Clock {
  const clock = systemClock()
  return {
    ...clock,
    steady: () => clock.steady() * speed,
    // A timer of Node may fire up to a millisecond early, which is many of these.
    after: (ms, run) => clock.after(Math.ceil(ms / speed) + 1, run),
  }
}
