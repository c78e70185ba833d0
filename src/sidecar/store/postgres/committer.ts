import type { Clock, Timer } from '../../../std/ports.ts'
import { StoreError } from '../../../core/store-error.ts'
import { codeOf } from '../../../std/errors.ts'
import type { Witness } from '../sqlite/committer.ts'
import { RolledBack, type Database, type Queries, type Transaction } from './database.ts'
import { lockHints } from './hints.ts'
import type { Admission, Exclusion, Ownership } from './ownership.ts'

/**
 * What a write changes:
 *
 * - `anything`: any number of rows. Its statements are planned for their values, all others once.
 * - `facts`: it adds facts and calls
 * - `frames`: it adds frames and their deliveries, moves the cursor, and changes nothing else
 * - `outcomes`: it stores only outcomes, and other writes do not wait for it
 * - `lane`: one lane
 * - `few`: few rows, but no lane, and it adds no fact
 */
export type Kind = 'anything' | 'facts' | 'frames' | 'outcomes' | 'lane' | 'few'

/** A write as one statement, which is a transaction by itself, and checks the fence. */
type Single<T> = (queries: Queries, admission: Admission) => Promise<T>

export interface Manner<T = unknown> {
  /** Milliseconds that the write may wait to share the transaction of another one; 0: it does not wait. */
  patience?: number
  /** Default: `anything`. */
  kind?: Kind
  /** The write changes rows of hints. */
  hints?: boolean
  /** Runs in place of the write's own statements, when no other write shares its transaction. */
  single?: Single<T> | undefined
}

/** One try to run the statements of a write. */
export interface Trial {
  /**
   * Rows that are nearly always new are inserted without a check. If one is there, the transaction fails, and is repeated
   * with false.
   */
  optimistic: boolean
  /** Called when all statements are sent before the first answer: then COMMIT is sent directly behind them. */
  sent(): void
}

type Run<T> = (queries: Queries, trial: Trial) => Promise<T>

interface Write extends Manner {
  run: Run<unknown>
  kind: Kind
  patience: number
  /** It has waited for a lock as long as a statement may. */
  obstructed: boolean
  committed(result: unknown): void
  failed(error: unknown): void
}

/** Checks and writes that are part of every transaction of several statements. */
export interface Part {
  note(transaction: Transaction): Promise<void>
  committed(): void
  /** The transaction failed without an answer to its COMMIT. */
  unknown(): void
}

/**
 * A replay of 10,000 deliveries finds a row for each. After an optimistic transaction failed, none is optimistic for so many
 * milliseconds: the log of the server gets at most one error a minute.
 */
const CAUTIOUS = 60_000
/** Milliseconds between two checks whether a commit succeeded. */
const ASKED = 200
/** For so long a stop waits for the answer to that, milliseconds. */
const LAST_ASKED = 5000

/**
 * Group commit: writes that arrive while a transaction is under way share the next one, in the order of their arrival. Each
 * write has its own promise, which settles when its transaction is durable.
 */
export class Committer {
  readonly #database: Database
  readonly #clock: Clock
  readonly #ownership: Ownership
  readonly #witness: Witness
  readonly #part: Part
  readonly #onShared: (number: number) => void
  #queue: Write[] = []
  /**
   * What the next transaction takes. `none`: there is no next one yet. `urgent`: all writes except outcomes that may
   * wait.
   */
  #due: 'none' | 'urgent' | 'all' = 'none'
  #working: Promise<void> | null = null
  /** Steady milliseconds: since when the process stops. */
  #finishing: number | null = null
  /**
   * The answers to a statement and to COMMIT were lost, or that to a single statement. The write has failed for its caller, and yet its facts and
   * their deliveries may be stored. Once a later transaction is committed, the fence refuses this one: only then it is
   * time to look for what it has stored.
   */
  #mayBeStored = false
  /** Steady milliseconds: a transaction that begins before is not optimistic. */
  #cautiousUntil = 0
  /** The timer of the least patient write. */
  #patience: { timer: Timer; until: number } | null = null

  constructor(parts: {
    database: Database
    clock: Clock
    ownership: Ownership
    witness: Witness
    part: Part
    /** Called after a commit that may concern other processes, with its number. A single statement always may. */
    onShared: (number: number) => void
  }) {
    this.#database = parts.database
    this.#clock = parts.clock
    this.#ownership = parts.ownership
    this.#witness = parts.witness
    this.#part = parts.part
    this.#onShared = parts.onShared
  }

  /** `effect` updates memory: it runs after the commit, before any other write of this process begins. */
  write<T>(
    run: Run<T>,
    effect: (result: T) => void = () => undefined,
    { patience = 0, kind = 'anything', hints = false, single }: Manner<T> = {},
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({
        run,
        kind,
        hints,
        single,
        patience,
        obstructed: false,
        committed(result) {
          effect(result as T)
          resolve(result as T)
        },
        failed: (error) => {
          this.#witness.onRefused?.(error)
          reject(error instanceof Error ? error : new Error(String(error)))
        },
      })
      if (patience === 0) this.#start('urgent')
      else this.#wait(patience)
    })
  }

  /** Resolves when nothing waits and nothing is under way. */
  async finish(): Promise<void> {
    this.#finishing ??= this.#clock.steady()
    this.#start('all')
    await this.#working
  }

  #wait(patience: number): void {
    const until = this.#clock.steady() + patience
    if (this.#patience !== null && this.#patience.until <= until) return
    this.#patience?.timer.cancel()
    this.#patience = { timer: this.#clock.after(patience, () => this.#start('all')), until }
  }

  #start(due: 'urgent' | 'all'): void {
    if (due === 'all') {
      this.#patience?.timer.cancel()
      this.#patience = null
    }
    if (this.#due !== 'all') this.#due = due
    this.#working ??= this.#work()
  }

  async #work(): Promise<void> {
    // Writes that are queued before this process awaits anything share the transaction.
    await Promise.resolve()
    for (let writes = this.#take(); writes.length > 0; writes = this.#take()) {
      const optimistic = this.#clock.steady() >= this.#cautiousUntil
      try {
        await this.#store(writes, optimistic)
      } catch (error) {
        if (isInTheWay(error)) this.#repeat(writes, error)
        else if (optimistic && (!(error instanceof StoreError) || isWithoutConnection(error))) {
          // Mostly a row was there. The first error may also be that of a statement behind the one that failed.
          this.#cautiousUntil = this.#clock.steady() + CAUTIOUS
          this.#putBack(writes)
        } else if (writes.length === 1 || error instanceof StoreError) {
          for (const write of writes) write.failed(error)
        } else {
          // One bad write must not fail the others: each gets a transaction of its own.
          for (const write of writes) await this.#alone(write)
        }
      }
    }
    // Nothing runs between the last look at the queue and this line, so a later write starts a new loop.
    this.#working = null
  }

  /**
   * The writes of the next transaction. When 200 frames a second came one by one, each transaction also stored the
   * outcome of the frame before, and waited for those statements. So outcomes that may wait share a transaction of
   * their own.
   */
  #take(): readonly Write[] {
    const [due, queue] = [this.#due, this.#queue]
    this.#due = 'none'
    if (due === 'none') return []
    this.#queue = due === 'all' ? [] : queue.filter(isPatientAck)
    return this.#queue.length === 0 ? queue : queue.filter((write) => !isPatientAck(write))
  }

  /**
   * A process that was frozen in a transaction loses its locks meanwhile. A program that holds a lock twice as long may
   * keep it for hours: those who wait for these writes must know that the store refuses them.
   */
  #repeat(writes: readonly Write[], error: unknown): void {
    const waited = !isDeadlock(error)
    const again: Write[] = []
    for (const write of writes) {
      if (waited && write.obstructed) write.failed(error)
      else {
        write.obstructed = waited
        again.push(write)
      }
    }
    this.#putBack(again)
  }

  /** The next transaction begins with these writes. */
  #putBack(writes: readonly Write[]): void {
    this.#queue = [...writes, ...this.#queue]
    this.#due = 'all'
  }

  async #alone(write: Write): Promise<void> {
    try {
      await this.#transact([write], false)
    } catch (error) {
      write.failed(error)
    }
  }

  async #store(writes: readonly Write[], optimistic: boolean): Promise<void> {
    const [write] = writes
    const queries = this.#database.single
    const single = optimistic && writes.length === 1 ? write?.single : undefined
    if (write === undefined || queries === null || single === undefined)
      await this.#transact(writes, optimistic)
    else await this.#execute(write, (admission) => single(queries, admission))
  }

  /**
   * When 200 frames a second come one by one, each is one statement without a transaction around it: the server gets one message
   * in place of four, and a callback leaves 0.1 ms earlier.
   */
  async #execute(write: Write, run: (admission: Admission) => Promise<unknown>): Promise<void> {
    const started = this.#clock.steady()
    let result: unknown
    let number = 0
    try {
      result = await this.#ownership.admit((admission) => {
        number = admission.number
        return run(admission)
      })
    } catch (error) {
      if (!isAnswer(error)) this.#mayBeStored = true
      throw error
    }
    this.#report([write], new Map([[write, result]]), started)
    this.#onShared(number)
  }

  async #transact(writes: readonly Write[], optimistic: boolean): Promise<void> {
    const started = this.#clock.steady()
    const results = new Map<Write, unknown>()
    const concernsOthers = !writes.every(isOwn)
    const transaction = await this.#database.begin(writes.every(({ kind }) => kind !== 'anything'))
    let committing: Promise<void> | null = null
    let number: number
    try {
      let unsent = writes.length
      const trial: Trial = { optimistic, sent: () => void unsent-- }
      const run = async (write: Write): Promise<void> =>
        void results.set(write, await write.run(transaction, trial))
      const [acks, others] = [writes.filter(isOfOutcomes), writes.filter((write) => !isOfOutcomes(write))]
      const oneByOne = async (): Promise<void> => {
        for (const write of others) await run(write)
      }
      const excludes = exclusionOf(writes)
      const fence = this.#ownership.confirm(transaction, { excludes, concernsOthers })
      number = fence.number
      const ordered =
        excludes !== 'writes' && writes.some(({ hints }) => hints) ? lockHints(transaction) : null
      const work = together([fence.confirmed, ordered, oneByOne(), ...acks.map(run)])
      if (unsent > 0) {
        await work
        await this.#part.note(transaction)
      } else {
        const noted = this.#part.note(transaction)
        committing = transaction.commit()
        // If a statement of `work` fails, the statements behind it fail because of it: its error is the one to throw.
        noted.catch(() => undefined)
        committing.catch(() => undefined)
        await work
        await noted
      }
    } catch (error) {
      if (committing === null) await transaction.rollback()
      else if (!(await hasAnswer(committing))) {
        this.#mayBeStored = true
        this.#part.unknown()
      }
      throw error
    }
    try {
      await (committing ?? transaction.commit())
    } catch (error) {
      if (!(await this.#isCommitted(number))) throw error
    }
    this.#part.committed()
    this.#report(writes, results, started)
    if (concernsOthers) this.#onShared(number)
  }

  /** The writes are durable. */
  #report(writes: readonly Write[], results: ReadonlyMap<Write, unknown>, started: number): void {
    for (const write of writes) write.committed(results.get(write))
    this.#witness.onCommit?.((this.#clock.steady() - started) / 1000)
    if (this.#mayBeStored) {
      this.#mayBeStored = false
      this.#ownership.membership.missed()
    }
  }

  /**
   * The answer to a COMMIT was lost. The server is asked until it answers, or until this process is fenced or stops.
   */
  async #isCommitted(number: number): Promise<boolean> {
    for (;;) {
      const { lost } = this.#ownership.membership
      if (lost !== null) throw lost
      try {
        return await this.#ownership.isCommitted(number)
      } catch (error) {
        // This error does not show that the transaction was rolled back. If it was committed and handed a shard over,
        // this process would still work on the shard.
        if (this.#finishing !== null && this.#clock.steady() - this.#finishing >= LAST_ASKED) throw error
      }
      await new Promise<void>((resolve) => void this.#clock.after(ASKED, resolve))
    }
  }
}

async function hasAnswer(committing: Promise<void>): Promise<boolean> {
  try {
    await committing
    return true
  } catch (error) {
    return error instanceof StoreError && error.cause instanceof RolledBack
  }
}

/**
 * Two processes lock the same lane only where one adds frames to it and the other, its owner, stores an outcome or postpones
 * it. Frames lock their lanes by their keys, as one write of outcomes does, so both may be under way. A transaction that
 * locks several lanes in another order must exclude frames, or each could wait for the other.
 */
function exclusionOf(writes: readonly Write[]): Exclusion {
  if (writes.some(({ kind }) => kind === 'anything' || kind === 'facts')) return 'writes'
  const outcomes = writes.filter(isOfOutcomes).length
  if (writes.some(({ kind }) => kind === 'frames'))
    return writes.length === 1 + outcomes && outcomes <= 1 ? 'lanes' : 'writes'
  return outcomes + writes.filter(({ kind }) => kind === 'lane').length > 1 ? 'lanes' : 'nothing'
}

function isOfOutcomes({ kind }: Write): boolean {
  return kind === 'outcomes'
}

/** A write in lanes of this process's shards, which are no other's concern. */
function isOwn({ kind }: Write): boolean {
  return kind === 'outcomes' || kind === 'lane'
}

/** A write of outcomes that may wait, because no other write needs its result. */
function isPatientAck(write: Write): boolean {
  return isOfOutcomes(write) && write.patience > 0
}

/** Another program holds a lock for too long, or two processes wait for each other (a deadlock). */
function isInTheWay(error: unknown): boolean {
  return error instanceof StoreError && (codeOf(error.cause) === '55P03' || isDeadlock(error))
}

/** The server has no room for one more connection. */
function isWithoutConnection({ cause }: StoreError): boolean {
  return codeOf(cause) === '53300'
}

/** Whether the server has refused the statement. All its codes have a digit, unlike `EPIPE`; 08 and 57P: it may have stopped. */
function isAnswer(error: unknown): boolean {
  const code = codeOf(error instanceof StoreError ? error.cause : error)
  return /^(?!08|57P)(?=.*\d)[0-9A-Z]{5}$/.test(code)
}

function isDeadlock(error: unknown): boolean {
  return error instanceof StoreError && codeOf(error.cause) === '40P01'
}

/**
 * Waits for all work, also if some of it fails. Otherwise a statement could be sent after the end of its transaction,
 * and would be a transaction by itself.
 * @throws the error that came first: the transaction refuses every statement after it.
 */
export async function together(work: readonly (Promise<unknown> | null)[]): Promise<void> {
  const failed: unknown[] = []
  const settle = async (one: Promise<unknown> | null): Promise<void> => {
    try {
      await one
    } catch (error) {
      failed.push(error)
    }
  }
  await Promise.all(work.map(settle))
  if (failed.length > 0) throw failed[0]
}
