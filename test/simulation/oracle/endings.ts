import type { Reading } from '../../../src/core/store.ts'
import type { Fault, Fired } from '../faults.ts'
import type { Life } from '../life.ts'
import type { WatchParts } from './watch.ts'

/**
 * Milliseconds until a call without work under way is closed after its action was found to be gone.
 */
const AT_ONCE = 2000
/** And, once nothing goes wrong any more, so soon after a start that finds it gone: a look that failed comes again. */
const AFTER_CALM = 120_000
/** What a call may miss its deadline by all by itself, above all one that was there before us, milliseconds. */
const SHORT = 20_000

/** Calls whose actions are gone, and whether they are closed in time. */
export class Endings {
  readonly #parts: WatchParts
  readonly #putOff
  /** Found to be gone without work under way: true time. */
  readonly #left = new Map<string, { life: Life; at: number }>()
  /** Put off by its app, and not among what its session requires: true time. */
  readonly #unwanted = new Map<string, number>()
  /** True time. */
  calmAt = Infinity

  constructor(parts: WatchParts) {
    this.#parts = parts
    this.#putOff = parts.db
      .prepare<[string], string>(
        'SELECT call_id FROM calls WHERE session_id = ? AND deferred = 1 AND ended_at IS NULL',
      )
      .pluck()
  }

  /** A reading was stored. */
  read(life: Life, { sessionId, session, resolved }: Reading): void {
    const { now } = this.#parts.agenda
    for (const callId of resolved)
      if (!life.claims.has(`call ${callId}`)) this.#left.set(callId, { life, at: now })
    for (const callId of this.#putOff.all(sessionId)) {
      const wanted = session?.actions.some((action) => action.callId === callId) === true
      // A reading that began before the call was made does not show it yet.
      if (wanted) this.#unwanted.delete(callId)
      else if (!this.#unwanted.has(callId)) this.#unwanted.set(callId, now)
    }
  }

  closed(life: Life, callId: string): void {
    const { agenda, sites, state, trace } = this.#parts
    const { now } = agenda
    const left = this.#left.get(callId)
    const unwanted = this.#unwanted.get(callId) ?? Infinity
    // A follow-up message is pending then, for as long as it takes.
    if (state.calls.get(callId)?.notDelivered === true) return
    const late = (since: number): void =>
      trace.broken('prompt', `${callId} was closed ${Math.round(now - since)} ms after its action was gone`)
    const diskFailed = (): boolean => sites.fired.some(({ fault }) => fault.startsWith('disk_'))
    // A process whose database was out of reach tries less and less often to write what its tool has said.
    const wasCut = (at: number): boolean => (life.face?.cutUntil ?? 0) > at
    if (left?.life === life && now - left.at > AT_ONCE && life.asleepUntil < left.at)
      if (!wasCut(left.at) && !diskFailed()) late(left.at)
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
