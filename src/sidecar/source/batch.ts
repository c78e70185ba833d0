import type { ConnectionEnd, StreamConnection } from '../../protocol/connection.ts'
import type { PersistedEvent } from '../../core/event-type.ts'
import type { Fact } from '../../core/fact.ts'
import type { Meaning } from '../../protocol/frame.ts'
import { joinScopes, type Hint } from '../../core/hint.ts'
import { isBefore } from '../../core/seq.ts'
import type { Batch } from '../../core/store.ts'
import type { Clock } from '../../std/ports.ts'

/**
 * When 40,000 frames come at once, nearly all would be in memory before handlers get the first. Above HIGH characters of
 * undelivered facts, reading pauses until LOW are left: enough for handlers while the next frames are committed.
 */
const HIGH = 512 * 1024
const LOW = 256 * 1024
/** The longest pause between two chunks, milliseconds. */
const LONGEST = 100
/** The time between two checks of the handlers during a pause, milliseconds. */
const LOOK = 5
/**
 * If handlers accept fewer characters than this between two checks, it is not a lack of processor time that slows them:
 * the pause ends.
 */
const FAST = 2048

/** Characters that may wait for the disk before reading stops. The service closes a reader that is 8 MiB behind. */
const MAX_PENDING = 4 * 1024 * 1024
/** Frames and characters committed in one transaction. */
const BATCH_FRAMES = 1000
const BATCH_CHARACTERS = 1024 * 1024
/**
 * A message is followed within a millisecond by the first frames of its turn, perhaps by a function call. A message alone
 * waits at most so long for a further frame, milliseconds. Frames that come together then share its commit, so that a call
 * among them does not wait for it.
 */
const FOLLOWED_WITHIN = 2
const MESSAGE: PersistedEvent = 'user.message'

/** The most sessions that are remembered as hinted. The first frame of any other session makes a hint. */
const SESSIONS_REMEMBERED = 10_000
/** The first frame of a session requests a read even if it announces no state; delay of that read, milliseconds. */
const FIRST_FRAME_DELAY = 30

/** A frame that waits for the disk. */
export interface Pending {
  meaning: Extract<Meaning, { kind: 'fact' | 'unreadable' }>
  /** The bytes of a frame that cannot be read, as text. */
  raw: string
  at: number
}

function charactersOf({ meaning, raw }: Pending): number {
  return meaning.kind === 'fact' ? meaning.fact.body.length : raw.length
}

function isMessage({ meaning }: Pending): boolean {
  return meaning.kind === 'fact' && meaning.fact.type === MESSAGE
}

/** How many of `pending` go into one transaction. */
function batchSize(pending: readonly Pending[]): number {
  let characters = 0
  let count = 0
  for (const entry of pending) {
    characters += charactersOf(entry)
    if (count > 0 && (count >= BATCH_FRAMES || characters > BATCH_CHARACTERS)) break
    count++
  }
  return count
}

/** The lowest seq in `batch`, in any order of its frames; null when it has none. */
export function lowestSeq(batch: readonly Pending[]): string | null {
  let lowest: string | null = null
  for (const { meaning } of batch) {
    if (meaning.seq !== null && (lowest === null || isBefore(meaning.seq, lowest))) lowest = meaning.seq
  }
  return lowest
}

/** Makes the commit of frames: facts, the hints that follow from them, and the cursor that they move. */
export function createBatcher(): (batch: readonly Pending[]) => Batch {
  const hinted = new Set<string>()

  return (batch) => {
    const facts: Fact[] = []
    const hints: Hint[] = []
    let cursor: string | undefined
    for (const { meaning, at } of batch) {
      const { seq } = meaning
      if (seq !== null && (cursor === undefined || isBefore(cursor, seq))) cursor = seq
      if (meaning.kind === 'unreadable') continue
      facts.push(meaning.fact)
      hints.push(...meaning.hints)
      const { sessionId } = meaning.fact
      if (sessionId === null || hinted.has(sessionId)) continue
      if (hinted.size >= SESSIONS_REMEMBERED) hinted.clear()
      hinted.add(sessionId)
      if (meaning.hints.length === 0) {
        hints.push({ sessionId, channel: 'stream', at, scope: 'session', delay: FIRST_FRAME_DELAY })
      }
    }
    return {
      facts,
      ...(hints.length === 0 ? {} : { hints: merge(hints) }),
      ...(cursor === undefined ? {} : { cursor }),
    }
  }
}

/** The hints of a batch, one for each session and subject: a thousand frames of one session request one read. */
function merge(hints: readonly Hint[]): Hint[] {
  const merged = new Map<string, Hint>()
  for (const hint of hints) {
    const key = `${hint.sessionId ?? ''}\0${hint.subject ?? ''}`
    const other = merged.get(key)
    if (other === undefined) merged.set(key, hint)
    else {
      const scope = joinScopes(hint.scope, other.scope)
      merged.set(key, { ...other, scope, delay: Math.min(hint.delay, other.delay) })
    }
  }
  return [...merged.values()]
}

/** The total time for which frames have waited: for the disk, or unread because reading pauses for delivery. */
export class HeldTime {
  readonly #clock: Pick<Clock, 'steady'>
  #reasons = 0
  #since = 0
  #sum = 0

  constructor(clock: Pick<Clock, 'steady'>) {
    this.#clock = clock
  }

  /** Milliseconds. */
  get ms(): number {
    return this.#sum + (this.#reasons > 0 ? this.#clock.steady() - this.#since : 0)
  }

  async during(work: Promise<void>): Promise<void> {
    if (this.#reasons++ === 0) this.#since = this.#clock.steady()
    try {
      await work
    } finally {
      const { ms } = this
      if (--this.#reasons === 0) this.#sum = ms
    }
  }
}

/** Frames that wait for the disk. Frames that arrive together are written together, one batch at a time. */
export class FrameQueue {
  readonly #commit: (batch: readonly Pending[]) => Promise<void>
  readonly #onFailure: () => void
  readonly #clock: Pick<Clock, 'soon' | 'after'>
  readonly held: HeldTime
  #pending: Pending[] = []
  #characters = 0
  #writing: Promise<void> | null = null
  #failure: { error: unknown } | null = null
  /** Ends the wait of a message for the frames after it. */
  #followed: (() => void) | null = null
  /** The connection is not read before the write under way has ended: nothing follows a message. */
  #unread = false

  /** `onFailure`: a batch could not be written; nothing more is written. */
  constructor(
    commit: (batch: readonly Pending[]) => Promise<void>,
    onFailure: () => void,
    clock: Pick<Clock, 'soon' | 'after'>,
    held: HeldTime,
  ) {
    this.#commit = commit
    this.#onFailure = onFailure
    this.#clock = clock
    this.held = held
  }

  push(frame: Pending): void {
    this.#pending.push(frame)
    this.#characters += charactersOf(frame)
    this.#followed?.()
  }

  /** Characters that no transaction has begun to write. */
  get characters(): number {
    return this.#characters
  }

  get failed(): boolean {
    return this.#failure !== null
  }

  /**
   * Starts a write unless one is under way. It waits one turn of the event loop, because a burst arrives in small
   * chunks: all of them are then in one batch.
   */
  start(): void {
    if (this.#pending.length > 0) this.#writing ??= this.held.during(this.#gather().then(() => this.#write()))
  }

  async #gather(): Promise<void> {
    await this.#turn()
    if (!this.#unread && this.#pending.every(isMessage)) await this.#next()
  }

  /** Waits for a further frame. */
  #next(): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.after(FOLLOWED_WITHIN, () => this.#followed?.())
      this.#followed = () => {
        timer.cancel()
        this.#followed = null
        resolve()
      }
    })
  }

  #hurry(): void {
    this.#unread = this.#writing !== null
    this.#followed?.()
  }

  #turn(): Promise<void> {
    return new Promise((resolve) => this.#clock.soon(resolve))
  }

  /**
   * The disk is slower than the network. Reading stops then, so that the service waits and our memory does not grow.
   */
  get isFull(): boolean {
    return this.#characters > MAX_PENDING && this.#writing !== null
  }

  /** Settles when the write under way has ended. */
  async written(): Promise<void> {
    this.#hurry()
    await this.#writing
  }

  /** Writes the rest. @throws the error that kept a batch from being written. */
  async finish(): Promise<void> {
    this.#hurry()
    await this.#writing
    // Frames after a batch that could not be written would move the cursor past it.
    if (!this.failed) await this.#write()
    if (this.#failure !== null) throw this.#failure.error
  }

  async #write(): Promise<void> {
    try {
      while (this.#pending.length > 0) await this.#commit(this.#take())
    } catch (error) {
      this.#failure = { error }
      this.#onFailure()
    } finally {
      this.#writing = null
      this.#unread = false
    }
  }

  #take(): readonly Pending[] {
    const size = batchSize(this.#pending)
    const batch = size === this.#pending.length ? this.#pending : this.#pending.slice(0, size)
    this.#pending = size === this.#pending.length ? [] : this.#pending.slice(size)
    for (const frame of batch) this.#characters -= charactersOf(frame)
    return batch
  }
}

/**
 * Reads a connection into the store as fast as data arrives: reading continues while a batch is written. Frames that
 * were complete before the end are then written. `pause` is awaited between two chunks.
 * @throws {NetworkFault} when the connection broke, was silent, or sent a frame without end; or the error that kept a
 * batch from being written.
 */
export async function drain(
  connection: StreamConnection,
  queue: FrameQueue,
  pause: () => Promise<void>,
): Promise<ConnectionEnd> {
  let end: ConnectionEnd | null = null
  try {
    while (end === null && !queue.failed) {
      end = await connection.next()
      if (queue.failed) break
      queue.start()
      while (queue.isFull) await queue.written()
      if (end === null) await queue.held.during(pause())
    }
  } finally {
    connection.close()
    await queue.finish()
  }
  return end ?? 'closed'
}

/** Characters of facts in memory that handlers have not got yet. */
export interface Undelivered {
  /** How many there are now. */
  readonly taken: number
  /** Calls `reached` each time that at most `mark` characters are left; `null` ends this. */
  watch(low: { mark: number; reached: () => void } | null): void
}

/**
 * Pauses reading while handlers are busy with many facts. It does not wait for a slow handler, or one that accepts nothing. A
 * handler may accept the last facts between two checks, so reading also continues as soon as LOW are left.
 */
export async function giveWay(clock: Clock, undelivered: Undelivered, queue: FrameQueue): Promise<void> {
  if (undelivered.taken + queue.characters <= HIGH) return
  await queue.written()
  const until = clock.steady() + LONGEST
  let before = undelivered.taken
  if (before <= LOW) return
  await new Promise<void>((resolve) => {
    const finish = (): void => {
      timer.cancel()
      undelivered.watch(null)
      resolve()
    }
    const look = (): void => {
      const left = undelivered.taken
      if (left <= LOW || before - left < FAST || clock.steady() >= until) return finish()
      before = left
      timer = clock.after(LOOK, look)
    }
    let timer = clock.after(LOOK, look)
    undelivered.watch({ mark: LOW, reached: finish })
  })
}
