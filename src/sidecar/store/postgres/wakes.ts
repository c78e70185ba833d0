import type { TransientEvent } from '../../../core/observer.ts'
import { isBefore } from '../../../core/seq.ts'
import { WAKE_TOPICS, type Wake, type WakeTopic } from '../../../core/shards.ts'
import { isObject } from '../../../std/json.ts'
import type { Clock, Log, Timer } from '../../../std/ports.ts'
import type { Membership } from '../membership.ts'
import type { Database, Listening } from './database.ts'

const CHANNEL = 'sidecar'
/** The most bytes of a notification. PostgreSQL accepts less than 8,000. */
const MOST = 7900
/** The most bytes of one transient event, or of several in one notification, which also has the name of the sender. */
const MOST_OF_ONE = 7700
/** The most bytes of transient events that wait. More are dropped: a reader may miss transient events. */
const MOST_WAITING = 128 * 1024
/** Milliseconds for which wakes are collected for one notification. */
const GATHERED = 20
/** The time between two checks of the connection, milliseconds. */
const CHECKED = 10_000
/** How long a check may take, milliseconds. */
const ANSWERED = 3000
/** The wait before a broken connection is opened again, milliseconds. */
const REOPENED = 500
/**
 * Behind a pooler no notification ever arrives. After FAILED failed checks the connection is opened only once in RARELY
 * milliseconds.
 */
const FAILED = 3
const RARELY = 60_000

/** Topics that concern only the owner of a shard. */
const OWNED: ReadonlySet<WakeTopic> = new Set(['lanes', 'hints', 'calls'])

/** What a commit means for the other processes. */
export interface Noted {
  topics: readonly WakeTopic[]
  /** The shard that these topics concern; absent: all. */
  shard?: number
  hint?: { sessionId: string; subject: string }
}

/** A transient event as it is sent. */
interface Shared {
  /** The highest seq that came before it; empty: none did. */
  after: string
  text: string
}

interface WakesParts {
  database: Database
  clock: Clock
  log: Log
  membership: Membership
}

/**
 * When the leader commits frames for a session of another process, a wake (NOTIFY) makes that process look at its
 * queues within milliseconds. A lost wake costs about a second: then each process checks what the others have written.
 */
export class Wakes {
  readonly #parts: WakesParts
  readonly #topics = new Set<WakeTopic>()
  /** The shards that the noted topics concern; null: all. */
  #shards: Set<number> | null = new Set()
  #hints: string[] = []
  /** The number of the last commit that may concern others. */
  #last = 0
  /** The same, when the last notification was sent. */
  #sent = 0
  #hasGap = false
  #leases = false
  /** Transient events that were not sent, in their order. */
  #transients: Shared[] = []
  /** The bytes of their texts. */
  #waiting = 0
  /** A notification with transient events is under way: one that is sent meanwhile may arrive before it. */
  #isSharing = false
  /** The highest seq that is stored. */
  #cursor = ''
  #sending: Timer | null = null
  #connection: Listening | null = null
  #timer: Timer | null = null
  #answer: (() => void) | null = null
  #failed = 0
  #stopped = false

  constructor(parts: WakesParts) {
    this.#parts = parts
  }

  start(): void {
    void this.#open()
  }

  /** Called after a commit. */
  note({ topics, shard, hint }: Noted): void {
    if (this.#parts.membership.isAlone) return
    for (const topic of topics) this.#topics.add(topic)
    if (topics.some((topic) => OWNED.has(topic))) {
      if (shard === undefined) this.#shards = null
      else this.#shards?.add(shard)
    }
    if (hint !== undefined) this.#hints.push(ascii([hint.sessionId, hint.subject]))
    this.#arm()
  }

  /** Called after the topics of a commit that may concern others are noted: the others need not look for it. */
  noteCommit(number: number): void {
    this.#last = number
    if (this.#parts.membership.live > 1) this.#arm()
    else this.#sent = number
  }

  /** An earlier commit was stored though its answer was lost, so its topics are not noted: the others look for it. */
  noteGap(): void {
    this.#hasGap = true
  }

  /** Called after a commit of frames: those up to `cursor` are stored. */
  noteCursor(cursor: string): void {
    if (isBefore(this.#cursor, cursor)) this.#cursor = cursor
    if (this.#transients.length > 0) this.#arm()
  }

  /** The others get a transient event once the frames before it are stored, where they read them. */
  noteTransient({ id, type, sessionId, body, at, after }: TransientEvent): void {
    if (this.#parts.membership.live <= 1) return
    const text = ascii([id, type, sessionId, body, at, after])
    if (text.length > MOST_OF_ONE || this.#waiting + text.length > MOST_WAITING) return
    this.#waiting += text.length
    this.#transients.push({ after: after ?? '', text })
    this.#arm()
  }

  /** Leases were freed, or a process joined: the others must look. */
  noteLeases(): void {
    this.#leases = true
    this.#arm()
  }

  #arm(): void {
    if (!this.#stopped) this.#sending ??= this.#parts.clock.after(GATHERED, () => void this.#send())
  }

  async #send(): Promise<void> {
    this.#sending = null
    const hasWake = this.#topics.size > 0 || this.#leases || this.#last > this.#sent
    if (hasWake) void this.#notify([this.#takeWake()])
    if (this.#isSharing) return
    const texts = this.#takeTransients()
    if (texts.length === 0) return
    this.#isSharing = true
    await this.#notify(texts)
    this.#isSharing = false
    if (this.#transients.length > 0) this.#arm()
  }

  #takeWake(): string {
    const { id } = this.#parts.membership
    const head = ascii({
      from: id,
      after: this.#hasGap ? this.#last : this.#sent,
      last: this.#last,
      topics: [...this.#topics],
      shards: this.#shards === null ? null : [...this.#shards],
      leases: this.#leases,
    }).slice(0, -1)
    let text = `${head},"hints":[`
    for (const [index, hint] of this.#hints.entries()) {
      if (text.length + hint.length + 3 > MOST) break
      text += index === 0 ? hint : `,${hint}`
    }
    // Without a new number, the others would not see the gap.
    if (this.#last > this.#sent) this.#hasGap = false
    this.#sent = this.#last
    this.#topics.clear()
    this.#shards = new Set()
    this.#hints = []
    this.#leases = false
    return `${text}]}`
  }

  /**
   * Notifications with the transient events before which all frames are stored. None of a process that was frozen: another
   * one may lead by now, and has sent newer ones.
   */
  #takeTransients(): string[] {
    const { membership } = this.#parts
    if (membership.refusal !== null || !membership.leads) {
      this.#transients = []
      this.#waiting = 0
      return []
    }
    const waits = this.#transients.findIndex(({ after }) => isBefore(this.#cursor, after))
    const due = this.#transients.splice(0, waits === -1 ? this.#transients.length : waits)
    const head = ascii({ from: membership.id }).slice(0, -1)
    const texts: string[] = []
    let events = ''
    const finish = (): void => {
      // The server sends equal notifications of one transaction only once.
      if (events !== '') texts.push(`${head},"part":${texts.length},"transients":[${events}]}`)
      events = ''
    }
    for (const { text } of due) {
      this.#waiting -= text.length
      if (events.length + text.length > MOST_OF_ONE) finish()
      events += events === '' ? text : `,${text}`
    }
    finish()
    return texts
  }

  /** In a statement of its own: inside a longer transaction, it would delay the commits of other processes. */
  async #notify(texts: readonly string[]): Promise<void> {
    await this.#parts.database
      .rows('SELECT pg_notify($1, text) FROM unnest($2::text[]) text', [CHANNEL, texts])
      .catch(() => undefined)
  }

  async #open(): Promise<void> {
    const { database, clock } = this.#parts
    try {
      const connection = await database.listen(CHANNEL, (text) => this.#hear(text))
      if (this.#stopped) return connection.end()
      this.#connection = connection
      void connection.ended.then(() => this.#reopen(connection))
      this.#timer = clock.after(CHECKED, () => void this.#check(connection))
      // Finds what was sent while no connection was open.
      void this.#parts.membership.look()
    } catch {
      if (!this.#stopped) this.#timer = clock.after(REOPENED, () => void this.#open())
    }
  }

  #reopen(connection: Listening): void {
    if (this.#connection !== connection) return
    this.#connection = null
    this.#timer?.cancel()
    if (this.#stopped) return
    connection.end()
    const after = this.#failed < FAILED ? REOPENED : RARELY
    this.#timer = this.#parts.clock.after(after, () => void this.#open())
  }

  /** A half-open connection accepts statements, and never receives. So a notification to this process itself must arrive. */
  async #check(connection: Listening): Promise<void> {
    const { clock, log, membership } = this.#parts
    let timer: Timer | null = null
    const heard = await new Promise<boolean>((resolve) => {
      this.#answer = () => resolve(true)
      timer = clock.after(ANSWERED, () => resolve(false))
      void this.#notify([ascii({ from: membership.id, check: true })])
    })
    ;(timer as Timer | null)?.cancel()
    this.#answer = null
    if (this.#stopped || this.#connection !== connection) return
    if (heard) {
      this.#failed = 0
      this.#timer = clock.after(CHECKED, () => void this.#check(connection))
      return
    }
    this.#failed++
    if (this.#failed === FAILED)
      log.warn(
        {},
        'store: no notification of the database arrives, as behind a pooler; a timer finds the changes of other replicas within a second',
      )
    this.#reopen(connection)
  }

  #hear(text: string): void {
    const { membership } = this.#parts
    const given = read(text)
    if (!isObject(given)) return
    if (given.from === membership.id) {
      if (given.check === true) this.#answer?.()
      return
    }
    const { from, after, last, shards } = given
    if (typeof from === 'string' && typeof after === 'number' && typeof last === 'number')
      membership.heard(from, { after, last })
    if (given.leases === true) void membership.look()
    for (const event of Array.isArray(given.transients) ? given.transients.flatMap(transientOf) : [])
      membership.report((to) => to.transientShared?.(event))
    const ours =
      !Array.isArray(shards) || shards.some((one) => typeof one === 'number' && membership.mayClaim(one))
    const named: readonly unknown[] = Array.isArray(given.topics) ? given.topics : []
    const topics = WAKE_TOPICS.filter((topic) => named.includes(topic) && (ours || !OWNED.has(topic)))
    if (topics.length === 0) return
    const hints = Array.isArray(given.hints) ? given.hints.flatMap(hintOf) : []
    const wake: Wake = { topics: new Set(topics), hints: topics.includes('hints') ? hints : [] }
    membership.report((to) => to.woken?.(wake))
  }

  stop(): void {
    this.#stopped = true
    this.#sending?.cancel()
    this.#timer?.cancel()
    this.#connection?.end()
    this.#answer?.()
  }

  /** The last notification of this process: its leases are free. */
  async sendLeases(): Promise<void> {
    await this.#notify([ascii({ from: this.#parts.membership.id, leases: true })])
  }
}

/** Any program may send to the channel. */
function read(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function hintOf(given: unknown): Wake['hints'] {
  if (!Array.isArray(given)) return []
  const [sessionId, subject]: unknown[] = given
  return typeof sessionId === 'string' && typeof subject === 'string' ? [{ sessionId, subject }] : []
}

function transientOf(given: unknown): TransientEvent[] {
  if (!Array.isArray(given)) return []
  const [id, type, sessionId, body, at, after]: unknown[] = given
  if (typeof id !== 'string' || typeof type !== 'string' || typeof body !== 'string') return []
  if (typeof at !== 'number' || !isTextOrNull(sessionId) || !isTextOrNull(after)) return []
  return [{ id, type, sessionId, body, at, after }]
}

function isTextOrNull(given: unknown): given is string | null {
  return given === null || typeof given === 'string'
}

/** One byte for each character, so that the length is known. It has no character that PostgreSQL refuses. */
function ascii(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[\u0080-\uffff]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
