import type { Reading } from '../../../src/core/store.ts'
import type { Fault, Fired } from '../faults.ts'
import type { Life } from '../life.ts'
import type { ModelCall } from '../service/state.ts'
import type { WatchParts } from './watch.ts'

/**
 * Milliseconds until a call without work under way is closed after its action was found to be gone.
 */
const AT_ONCE = 2000
/** And, once nothing goes wrong any more, so soon after a start that finds it gone: a look that failed comes again. */
const AFTER_CALM = 120_000
/** Nothing goes wrong any more. A call is closed so soon after a reading was stored that shows its session without its action. */
const AFTER_READING = 2000
/** A process that could not write tries less and less often, for so long after nothing goes wrong any more. */
const AFTER_REFUSALS = 60_000
/** What a call may miss its deadline by all by itself, above all one that was there before us, milliseconds. */
const SHORT = 20_000

/** Calls whose actions are gone, and whether they are closed in time. */
export class Endings {
  readonly #parts: WatchParts
  readonly #putOff
  readonly #isOpen
  /** Found to be gone without work under way: true time. */
  readonly #left = new Map<string, { life: Life; at: number }>()
  /** Put off by its app, and not among what its session requires: true time. */
  readonly #unwanted = new Map<string, number>()
  /** The last process that found a call itself: another one would learn only later that an action is gone that was never stored. */
  readonly #found = new Map<string, Life>()
  /** Calls that must be closed by then, true time. */
  readonly #due = new Map<string, { life: Life; sessionId: string; at: number; resolved: boolean }>()
  /** Answers for a session that are under way, and when the last one ended: a call waits for the reply to its own. */
  readonly #answers = new Map<string, { underWay: Set<object>; endedAt: number }>()
  /** True time. */
  calmAt = Infinity

  constructor(parts: WatchParts) {
    this.#parts = parts
    this.#putOff = parts.db
      .prepare<[string], string>(
        'SELECT call_id FROM calls WHERE session_id = ? AND deferred = 1 AND ended_at IS NULL',
      )
      .pluck()
    this.#isOpen = parts.db
      .prepare<[string], number>('SELECT ended_at IS NULL FROM calls WHERE call_id = ?')
      .pluck()
  }

  /** A reading was stored. */
  read(life: Life, reading: Reading): void {
    const { sessionId, session, resolved } = reading
    const { now } = this.#parts.agenda
    this.#expect(life, reading)
    for (const callId of resolved)
      if (!life.claims.has(`call ${callId}`)) this.#left.set(callId, { life, at: now })
    const wanted = new Set(session?.actions.map(({ callId }) => callId))
    for (const callId of this.#putOff.all(sessionId))
      if (!wanted.has(callId) && !this.#unwanted.has(callId)) this.#unwanted.set(callId, now)
    // A reading that began before the call was made did not show it yet.
    for (const callId of wanted) this.#unwanted.delete(callId)
  }

  /** The service no longer lists the action of an open call, and a reading that is stored shows that. */
  #expect(life: Life, { sessionId, session, resolved }: Reading): void {
    const { agenda, sites, state } = this.#parts
    if (!sites.quiet) return
    const listed = new Set(session?.actions.map(({ callId }) => callId))
    const isGone = ({ callId, goneAt }: ModelCall): boolean =>
      goneAt !== null && !listed.has(callId) && (session?.updatedAt ?? Infinity) >= Math.floor(goneAt)
    const wasRefused = this.#diskFailed() || (life.face?.cutUntil ?? 0) > 0
    const at = Math.max(agenda.now, wasRefused ? this.calmAt + AFTER_REFUSALS : 0) + AFTER_READING
    for (const call of state.calls.values()) {
      const { callId } = call
      // It may not be stored yet: a read that began before may still find it.
      if (call.sessionId === sessionId && isGone(call) && this.#isOpen.get(callId) !== 0)
        this.#due.set(callId, { life, sessionId, at, resolved: resolved.includes(callId) })
    }
  }

  found(life: Life, callIds: readonly string[]): void {
    for (const callId of callIds) this.#found.set(callId, life)
  }

  sent(life: Life, request: object, sessionId: string): void {
    const key = `${life.number} ${sessionId}`
    const answers = this.#answers.get(key) ?? { underWay: new Set(), endedAt: -Infinity }
    this.#answers.set(key, answers)
    answers.underWay.add(request)
  }

  replied(life: Life, request: object, sessionId: string): void {
    const answers = this.#answers.get(`${life.number} ${sessionId}`)
    if (answers?.underWay.delete(request) === true) answers.endedAt = this.#parts.agenda.now
  }

  /** After each step. */
  look(): void {
    const { agenda, shared, state, trace } = this.#parts
    for (const [callId, due] of this.#due) {
      if (due.at > agenda.now) continue
      const { life, sessionId } = due
      const answers = this.#answers.get(`${life.number} ${sessionId}`)
      const isOwner = shared === null || shared.ownerOf(sessionId) === life.face?.id
      const isOurs = isOwner && (due.resolved || this.#found.get(callId) === life)
      const isOpen = this.#isOpen.get(callId) === 1 && state.calls.get(callId)?.notDelivered === false
      if (!isOpen || !isOurs || !life.alive || life.stopping || life.replaced) this.#due.delete(callId)
      else if (answers !== undefined && answers.endedAt > due.at - AFTER_READING)
        due.at = answers.endedAt + AFTER_READING
      else if (answers === undefined || answers.underWay.size === 0)
        trace.broken('prompt', `${callId} is open, and its action was shown to be gone`)
    }
  }

  #diskFailed(): boolean {
    return this.#parts.sites.fired.some(({ fault }) => fault.startsWith('disk_'))
  }

  closed(life: Life, callId: string): void {
    const { agenda, state, trace } = this.#parts
    const { now } = agenda
    const left = this.#left.get(callId)
    const unwanted = this.#unwanted.get(callId) ?? Infinity
    // A follow-up message is pending then, for as long as it takes.
    if (state.calls.get(callId)?.notDelivered === true) return
    const late = (since: number): void =>
      trace.broken('prompt', `${callId} was closed ${Math.round(now - since)} ms after its action was gone`)
    // A process whose database was out of reach tries less and less often to write what its tool has said.
    const wasCut = (at: number): boolean => (life.face?.cutUntil ?? 0) > at
    if (left?.life === life && now - left.at > AT_ONCE && life.asleepUntil < left.at)
      if (!wasCut(left.at) && !this.#diskFailed()) late(left.at)
    const since = Math.max(unwanted, this.calmAt, life.startedAt, life.asleepUntil)
    if (now - since > AFTER_CALM) late(since)
  }
}

/**
 * Whether a call may be answered with an error. Its tool failed, its time is over, or its output was refused. Or its app knows
 * that the session no longer waits, and the sidecar does not, because no webhook reports a deleted session.
 */
export function mayFail({ sites, state, shared }: WatchParts, callId: string): boolean {
  const call = state.calls.get(callId)
  if (call === undefined || call.plan.refusesOutput || call.forsaken) return true
  if (sites.fired.length === 0 && !sites.second) return (call.plan.timeout ?? Infinity) * 1000 <= SHORT
  if (call.expiresAt !== null && call.expiresAt - state.now() <= SHORT) return true
  return (
    sites.fired.some(failsTools) ||
    (call.plan.tool === 'charge' && (sites.second || cutsShort(sites.fired) || (shared?.takeovers ?? 0) > 0))
  )
}

/** Runs of a tool. */
const ATTEMPTS = 3
/** What may keep a call from running, or move our idea of the time. */
const HINDERS: readonly Fault[] = [
  'crash',
  'restart',
  'asleep',
  'partition',
  'frozen',
  'leaves',
  'outage',
  'overload',
  'app_unreachable',
  'clock_ahead',
  'clock_back',
  'slow',
  'disk_slow',
  'disk_full',
  'disk_refuses',
  'disk_error',
]

/** Whether a call has half of its deadline left, by a clock that we know, and nothing kept it from running. */
export function hadTime({ sites, state, skewed }: WatchParts, callId: string): boolean {
  const call = state.calls.get(callId)
  if (call === undefined || skewed) return false
  const atTool = sites.fired.filter(({ site }) => site === 'http tool')
  // A connection that is refused once or twice is tried again.
  const tried = atTool.length < ATTEMPTS && atTool.every(({ fault }) => fault === 'refused')
  if (!tried || sites.fired.some(({ fault }) => HINDERS.includes(fault))) return false
  if (call.expiresAt === null || call.plan.timeout === null) return true
  return call.expiresAt - state.now() > call.plan.timeout * 500
}

/** Or has an output refused. */
function failsTools({ site, fault }: Fired): boolean {
  const refuses =
    fault === 'project_limit' || fault === 'app_unreachable' || fault === 'asleep' || fault === 'frozen'
  return refuses || site === 'http tool' || site === 'app tool'
}

/**
 * A call that must not run twice has failed when its outcome is unknown: after a crash, or a stop
 * at which a full disk did not let it be written down.
 */
function cutsShort(fired: readonly Fired[]): boolean {
  const has = (...faults: readonly Fault[]): boolean => fired.some(({ fault }) => faults.includes(fault))
  return (
    has('crash', 'clock_ahead', 'clock_back') ||
    (has('restart') && has('disk_full', 'disk_refuses', 'disk_error'))
  )
}
