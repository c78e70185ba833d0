import type { Call, CallResult } from './call.ts'
import type { Lease } from './lease.ts'

/**
 * When the reply to a posted answer is lost, the call is `unconfirmed`: before the answer is posted again, the
 * sidecar reads the session. These are the stages of a function call; TRANSITIONS has every arrow between them.
 *
 * The store takes each step inside its transaction, from the call as it is stored; a step without an arrow changes
 * nothing. The rows still have the columns of version 0.1.0, so `stageOf` computes the stage from several of them.
 */
export type CallStage =
  | 'received'
  | 'running'
  /** The tool answered 202: the app answers later. */
  | 'deferred'
  /** The result must be posted. */
  | 'finished'
  /** The result was posted, perhaps by a process that crashed, and no reply is stored. */
  | 'unconfirmed'
  /** The service refused the output: the error text that the tool is configured with must be posted. */
  | 'refused'
  | 'refused_unconfirmed'
  /** The service accepted the answer: the session's actions decide what follows. */
  | 'accepted'
  /** The agent did not get the answer: a new message must be sent. */
  | 'undelivered'
  /** The new message was sent, and its reply was lost. */
  | 'resent'
  | 'answered'
  | 'not_delivered'
  | 'failed'

/** `at`: our wall clock, milliseconds. */
export type CallEvent =
  | { type: 'run_begun'; at: number }
  /** After a crash the tool is run again. */
  | { type: 'run_begun_again'; at: number }
  /** The run was stored but never began. */
  | { type: 'run_withdrawn' }
  /** The tool is called again. `uncertain`: this run may have had its effect. */
  | { type: 'run_failed'; error: string; uncertain: boolean }
  | { type: 'run_deferred' }
  /** From then on only this result is posted. */
  | { type: 'result_fixed'; result: CallResult; error: string | null; at: number }
  | { type: 'app_answered'; result: CallResult; at: number }
  /**
   * A read found that the service still waits for the app's answer. Refused if the app has answered in the meantime:
   * that answer is due at once.
   */
  | { type: 'app_awaited' }
  /** The request had no effect at the service. `counted`: it counts as an attempt. */
  | { type: 'post_put_off'; error: string; counted: boolean }
  | { type: 'post_unanswered'; error: string }
  | { type: 'post_refused'; text: string; error: string }
  | { type: 'post_accepted'; outcome: string }
  | { type: 'post_undelivered' }
  | { type: 'still_listed' }
  | { type: 'message_unanswered'; error: string }
  | { type: 'message_not_found'; error: string }
  /** Only the due time changes. */
  | { type: 'postponed' }
  | { type: 'answered'; outcome: string; error: string | null; at: number }
  | { type: 'not_delivered'; error: string | null; at: number }
  | { type: 'failed'; outcome: string; error: string | null; at: number }

/** A step of the ledger. It is refused unless the table has an arrow for it from the stored call. */
export interface CallStep {
  callId: string
  event: CallEvent
  /** Milliseconds after which the call is due again; absent: its due time does not change. */
  after?: number
  /** The lease of the claim: after its end the step is refused. Absent: no claim is needed. */
  lease?: Lease
}

type Arrows = Readonly<Partial<Record<CallEvent['type'], CallStage>>>

/** The stage after each event; an event that is not listed is refused. */
export const TRANSITIONS: Readonly<Record<CallStage, Arrows>> = {
  received: {
    run_begun: 'running',
    result_fixed: 'finished',
    postponed: 'received',
    failed: 'failed',
  },
  running: {
    run_begun_again: 'running',
    run_withdrawn: 'received',
    run_failed: 'received',
    run_deferred: 'deferred',
    result_fixed: 'finished',
    app_answered: 'finished',
    postponed: 'running',
    failed: 'failed',
  },
  deferred: {
    result_fixed: 'finished',
    app_answered: 'finished',
    app_awaited: 'deferred',
    postponed: 'deferred',
    failed: 'failed',
  },
  finished: {
    post_put_off: 'finished',
    post_unanswered: 'unconfirmed',
    post_refused: 'refused',
    post_accepted: 'accepted',
    post_undelivered: 'undelivered',
    postponed: 'finished',
    answered: 'answered',
    failed: 'failed',
  },
  unconfirmed: {
    post_put_off: 'unconfirmed',
    post_unanswered: 'unconfirmed',
    post_refused: 'refused',
    post_accepted: 'accepted',
    post_undelivered: 'undelivered',
    postponed: 'unconfirmed',
    answered: 'answered',
    failed: 'failed',
  },
  refused: {
    post_put_off: 'refused',
    post_unanswered: 'refused_unconfirmed',
    postponed: 'refused',
    failed: 'failed',
  },
  refused_unconfirmed: {
    post_put_off: 'refused_unconfirmed',
    post_unanswered: 'refused_unconfirmed',
    postponed: 'refused_unconfirmed',
    failed: 'failed',
  },
  accepted: {
    still_listed: 'accepted',
    postponed: 'accepted',
    answered: 'answered',
    failed: 'failed',
  },
  undelivered: {
    post_put_off: 'undelivered',
    message_unanswered: 'resent',
    postponed: 'undelivered',
    not_delivered: 'not_delivered',
    failed: 'failed',
  },
  resent: {
    post_put_off: 'resent',
    message_not_found: 'resent',
    postponed: 'resent',
    not_delivered: 'not_delivered',
    failed: 'failed',
  },
  answered: {},
  not_delivered: {},
  failed: {},
}

export function stageOf({ state, deferred, outcome, unsure }: Call): CallStage {
  if (state === 'running') return deferred ? 'deferred' : 'running'
  if (state !== 'finished') return state
  if (outcome === null) return unsure ? 'unconfirmed' : 'finished'
  if (outcome === 'refused') return unsure ? 'refused_unconfirmed' : 'refused'
  if (outcome === 'not_delivered') return unsure ? 'resent' : 'undelivered'
  return 'accepted'
}

/** The call after `event`; null when there is no such arrow. */
export function transition(call: Call, event: CallEvent): Call | null {
  const stage = stageOf(call)
  return TRANSITIONS[stage][event.type] === undefined ? null : { ...call, ...changes(call, event) }
}

function changes(call: Call, event: CallEvent): Partial<Call> {
  const { attempts, posts } = call
  switch (event.type) {
    case 'run_begun':
      return begun(call, event.at, call.uncertain)
    case 'run_begun_again':
      return begun(call, event.at, true)
    case 'run_withdrawn':
      return { state: 'received', attempts: attempts - 1 }
    case 'run_failed':
      return { state: 'received', error: event.error, uncertain: call.uncertain || event.uncertain }
    case 'run_deferred':
      return { deferred: true }
    case 'result_fixed':
      return finished(event.result, event.error, event.at)
    case 'app_answered':
      return finished(event.result, null, event.at)
    case 'post_put_off':
      return { posts: posts + (event.counted ? 1 : 0), error: event.error }
    case 'post_unanswered':
    case 'message_not_found':
      return { posts: posts + 1, unsure: true, error: event.error }
    case 'post_refused': {
      const result: CallResult = { kind: 'error', text: event.text }
      return { result, outcome: 'refused', error: event.error, posts: 0, unsure: false }
    }
    case 'post_accepted':
      return { outcome: event.outcome, posts: 0, unsure: false }
    case 'post_undelivered':
      return { outcome: 'not_delivered', posts: 0, unsure: false }
    case 'still_listed':
      return { posts: posts + 1 }
    case 'message_unanswered':
      return { posts: 1, unsure: true, error: event.error }
    case 'app_awaited':
    case 'postponed':
      return {}
    case 'answered':
    case 'failed':
      return ended(event.type, event.outcome, event)
    case 'not_delivered':
      return ended('not_delivered', 'not_delivered', event)
  }
}

function begun(call: Call, at: number, uncertain: boolean): Partial<Call> {
  const { attempts, startedAt } = call
  return { state: 'running', attempts: attempts + 1, startedAt: startedAt ?? at, uncertain, deferred: false }
}

function finished(result: CallResult, error: string | null, at: number): Partial<Call> {
  return { state: 'finished', result, finishedAt: at, error, deferred: false }
}

function ended(
  state: 'answered' | 'not_delivered' | 'failed',
  outcome: string,
  { error, at }: { error: string | null; at: number },
): Partial<Call> {
  return { state, outcome, error, endedAt: at, deferred: false }
}
