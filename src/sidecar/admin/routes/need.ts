import { Type, type Static } from 'typebox'
import type { Attempt, DeliveryRecord } from '../../../core/delivery.ts'
import type { StoreRefusal } from '../../../core/observer.ts'
import type { Action } from '../../../core/resource.ts'
import { component, nullable, oneOf, time } from '../component.ts'
import type { HandlerBacklog } from './handlers.ts'
import type { StatusReport } from './status.ts'

/** A problem that needs attention, with the action to take. */
export const NeedEntry = component(
  'Need',
  Type.Object({
    id: Type.String({ description: 'The same while the problem lasts.' }),
    tone: oneOf(['bad', 'warn'], {
      description: 'bad: something does not work. warn: something waits.',
    }),
    what: Type.String({ description: 'The problem.' }),
    since: nullable(time(), 'When it began.'),
    detail: nullable(Type.String()),
    advice: Type.String({ description: 'The action to take.' }),
    page: Type.String({ description: 'The page of the console that shows more.' }),
  }),
)

export type Need = Static<typeof NeedEntry.schema>

/** What the problems are found in. */
export interface Seen {
  status: StatusReport
  handlers: readonly HandlerBacklog[]
  /** Some of the open actions, the oldest first. */
  actions: readonly WaitingAction[]
  /** Whether there are more open actions. */
  more: boolean
  /** Pending deliveries that were tried, for each handler. */
  stuck: readonly DeliveryRecord[]
  /** Our wall clock, milliseconds. */
  now: number
}

export interface WaitingAction extends Pick<Action, 'type' | 'name'> {
  sessionId: string
  turnId: string | null
  /** When it was created, or else first read, milliseconds. */
  since: number
  /** Whether no configured tool answers it. */
  isForeign: boolean
}

const TOKEN_SOON = 7 * 86_400_000
/** Milliseconds for which a channel may be disconnected: it reconnects by itself. */
const CHANNEL_GRACE = 10_000
/** Seconds: a leader renews its lease every five, and loses it after fifteen. */
const LEADER_UNSEEN = 8
/** Milliseconds after which an open function call is listed. */
const CALL_LONG = 60_000
const OVERVIEW = '#/'
const NAME_AGAIN = 'give a handler this name again'
const STORE_ADVICE: Record<StoreRefusal, string> = {
  full: 'free disk space',
  busy: 'end the program that locks or overloads the database',
  unreachable: 'it is retried; "session-sidecar check -c FILE" tests the database',
  damaged: 'stop the sidecar, and run "session-sidecar store check -c FILE"',
  fenced: 'nothing to do: another replica owns these sessions',
  lost: 'restart the sidecar',
  other: 'read the log of the sidecar',
}

/** The problems that need attention, failures first. */
export function needsOf(seen: Seen): Need[] {
  return [
    ...tokenNeeds(seen),
    ...storeNeeds(seen),
    ...holdNeeds(seen),
    ...leaderNeeds(seen),
    ...replicaNeeds(seen),
    ...channelNeeds(seen),
    ...seen.handlers.flatMap(handlerNeeds),
    ...seen.handlers.flatMap((handler) => refusalNeeds(handler, seen)),
    ...slotNeeds(seen),
    ...routeNeeds(seen),
    ...functionNeeds(seen),
    ...callNeeds(seen),
    ...personNeeds(seen),
  ].sort((a, b) => Number(b.tone === 'bad') - Number(a.tone === 'bad'))
}

function tokenNeeds({ status: { token }, now }: Seen): Need[] {
  const need = { id: 'token', since: null, page: OVERVIEW }
  const advice =
    'create a new one and put it into service.token_file, or into service.token and restart the sidecar'
  if (token.state === 'rejected') {
    const detail = 'no request is sent to the service'
    return [{ ...need, tone: 'bad', what: 'the service rejects the token', detail, advice }]
  }
  const { expires_at: at } = token
  if (at === null || at - now > TOKEN_SOON) return []
  const what = `the token ${at > now ? 'expires' : 'expired'} at ${utc(at)}`
  return [{ ...need, tone: 'warn', what, detail: null, advice }]
}

function storeNeeds({ status: { store } }: Seen): Need[] {
  if (store.state !== 'refusing') return []
  const { since, reason: detail } = store
  const advice = STORE_ADVICE[detail ?? 'other']
  return [
    { id: 'store', tone: 'bad', what: 'the store refuses writes', since, detail, advice, page: OVERVIEW },
  ]
}

function holdNeeds({ status: { service }, now }: Seen): Need[] {
  const { held_until: until } = service
  if (until === null || until <= now) return []
  const what = `the service asked the sidecar to wait: no requests until ${utc(until)}`
  const advice = 'nothing to do: the sidecar continues then; callbacks continue now'
  return [{ id: 'hold', tone: 'warn', what, since: null, detail: null, advice, page: OVERVIEW }]
}

/**
 * Another replica shows the state that the leader reported last. So a leader that has just died looks alive until a
 * replica takes over.
 */
function leaderNeeds({ status: { replicas } }: Seen): Need[] {
  const leader = replicas.find((replica) => replica.leader && !replica.self)
  if (leader === undefined || leader.seen_seconds_ago < LEADER_UNSEEN) return []
  const what = `the leader ${nameOf(leader)} was last seen ${Math.round(leader.seen_seconds_ago)} s ago`
  const advice = 'nothing to do: another replica takes over within 20 s'
  return [{ id: 'leader', tone: 'bad', what, since: null, detail: null, advice, page: OVERVIEW }]
}

/** The name of a replica: its machine, and the beginning of its id, by which replicas on one machine differ. */
function nameOf({ name, id }: StatusReport['replicas'][number]): string {
  return [name, id.slice(0, 8)].filter((word) => word !== '').join(' ')
}

function replicaNeeds({ status: { replicas } }: Seen): Need[] {
  const own = replicas.find(({ self }) => self)?.configuration ?? null
  const others = replicas.filter(({ configuration }) => configuration !== null && configuration !== own)
  if (own === null || others.length === 0) return []
  const what = `replicas with another configuration than this one: ${others.map(nameOf).join(', ')}`
  const advice = 'give all replicas the same service.base_url, scope, channels, handlers and tools'
  return [{ id: 'replicas', tone: 'warn', what, since: null, detail: null, advice, page: OVERVIEW }]
}

/** A replica that does not lead knows whether the leader's channels work, but not since when. */
function channelNeeds({ status: { channels, leader }, now }: Seen): Need[] {
  return Object.entries(channels).flatMap(([name, { state, since, last_error: error }]): Need[] => {
    const isOwn = leader || name === 'webhook'
    if (state === 'live' || state === 'disabled' || (isOwn && now - since < CHANNEL_GRACE)) return []
    const need = {
      id: `channel ${name}`,
      tone: 'bad' as const,
      what: `channel ${name} is ${state}`,
      detail: error ?? 'no reason given',
      page: OVERVIEW,
    }
    if (!isOwn) return [{ ...need, since: null, advice: 'the status of the leader shows the cause' }]
    const advice =
      state === 'stopped'
        ? 'a new token starts it again'
        : 'it is retried; "session-sidecar check -c FILE" tests the address and the token'
    return [{ ...need, since, advice }]
  })
}

function handlerNeeds(handler: HandlerBacklog): Need[] {
  return [...stateNeeds(handler), ...deadNeeds(handler)]
}

function stateNeeds({ name, state, since, lastError, pending }: HandlerBacklog): Need[] {
  const waiting = `${pending} ${pending === 1 ? 'delivery' : 'deliveries'} pending`
  const need = {
    id: `${state} ${name}`,
    since,
    detail: lastError === null ? waiting : `${lastError}; ${waiting}`,
    page: '#/handlers',
  }
  switch (state) {
    case 'up':
      return []
    case 'down': {
      const what = `handler ${name} is unreachable`
      return [{ ...need, tone: 'bad', what, advice: 'start the app; deliveries are retried' }]
    }
    case 'paused': {
      const advice = `session-sidecar handlers resume ${name}`
      return [{ ...need, tone: 'warn', what: `handler ${name} is paused`, advice }]
    }
    case 'removed': {
      const what = `handler ${name} is not configured`
      const advice = `${NAME_AGAIN}: the deliveries are sent then`
      return pending === 0 ? [] : [{ ...need, tone: 'warn', what, advice }]
    }
  }
}

function deadNeeds({ name, state, dead }: HandlerBacklog): Need[] {
  if (dead === 0) return []
  const first = state === 'removed' ? NAME_AGAIN : 'read the response of the handler, fix the handler'
  return [
    {
      id: `dead ${name}`,
      tone: 'bad',
      what: `handler ${name} has ${count(dead, 'dead letter')}`,
      since: null,
      detail: null,
      advice: `${first}, then: session-sidecar deliveries retry --dead --handler ${name}`,
      page: `#/deliveries?status=dead&handler=${encodeURIComponent(name)}`,
    },
  ]
}

/** A handler that answers, but does not accept; the reason is in an attempt of a pending delivery. */
function refusalNeeds({ name, state }: HandlerBacklog, { stuck }: Seen): Need[] {
  const failed = stuck.find(({ handler, attempts }) => handler === name && hasFailed(attempts.at(-1)))
  const last = failed?.attempts.at(-1)
  if (state !== 'up' || failed === undefined || last === undefined) return []
  const need = {
    id: `refuses ${name}`,
    what: `handler ${name} does not accept a fact`,
    since: null,
    detail: last.status === undefined ? (last.error ?? null) : `it answered ${last.status}`,
    page: `#/deliveries?status=pending&handler=${encodeURIComponent(name)}`,
  }
  if (last.status === 401 || last.status === 403)
    return [
      {
        ...need,
        tone: 'bad',
        advice: 'if it refuses the signature, give it the secret of the configuration',
      },
    ]
  return [{ ...need, tone: 'warn', advice: `session-sidecar deliveries show ${failed.id}` }]
}

/** A fact that is sent again by `replay` keeps its earlier attempts: the last one may be the success. */
function hasFailed(last: Attempt | undefined): boolean {
  return last !== undefined && !(last.error === undefined && last.status !== undefined && last.status < 300)
}

function slotNeeds({ status: { slots } }: Seen): Need[] {
  const { used, limit } = slots
  if (limit === null || used < limit) return []
  const what = `${count(used, 'session')}, and service.session_slots is ${limit}: the service may refuse new ones`
  const advice =
    'delete sessions that are done; if the organization has more slots, set service.session_slots'
  return [{ id: 'slots', tone: 'warn', what, since: null, detail: null, advice, page: '#/sessions' }]
}

/** The document of the service cannot be read: five routes are missing, for one cause. So all are in one entry. */
function routeNeeds({ status: { routes } }: Seen): Need[] {
  const missing = routes.filter(({ how }) => how === 'missing')
  const [first] = missing
  if (first === undefined) return []
  const names = missing.map(({ operation }) => operation).join(', ')
  const isOne = missing.length === 1
  return [
    {
      id: 'routes',
      tone: 'warn',
      what: isOne
        ? `the service's route for ${names} is not known`
        : `the service's routes for ${names} are not known`,
      since: null,
      detail: isOne ? null : first.reason,
      advice:
        (isOne ? first.reason : null) ??
        '"session-sidecar status --verbose" shows the key of each in service.routes',
      page: OVERVIEW,
    },
  ]
}

function functionNeeds({ status: { needs_action: functions } }: Seen): Need[] {
  return functions.map(({ function: name, calls, oldest_at: since, advice }) => ({
    id: `function ${name}`,
    tone: 'warn',
    what: `${count(calls, 'call')} of a function without a tool${oldestOf(calls)}`,
    since,
    detail: null,
    advice,
    page: '#/actions',
  }))
}

/** Calls of functions without a tool are in a need of their own, with advice. */
function callNeeds({ actions, more, now }: Seen): Need[] {
  const late = actions.filter(
    ({ type, isForeign, since }) => type === 'function_call' && !isForeign && now - since > CALL_LONG,
  )
  const [oldest] = late
  if (oldest === undefined) return []
  const names = [...new Set(late.map(({ name }) => name))].join(', ')
  const what = `${count(late.length, 'function call', more)} without an answer${oldestOf(late.length)}`
  const advice = 'session-sidecar calls shows how often the tool ran and why it failed'
  const page = `#/sessions/${encodeURIComponent(oldest.sessionId)}?turn=${encodeURIComponent(oldest.turnId ?? '')}`
  return [{ id: 'calls', tone: 'warn', what, since: oldest.since, detail: names, advice, page }]
}

function personNeeds({ actions, more }: Seen): Need[] {
  const people = actions.filter(({ type }) => type !== 'function_call')
  const [oldest] = people
  if (oldest === undefined) return []
  const { length } = people
  const noun = length === 1 ? 'approval or question' : 'approvals and questions'
  const what = `${length}${more ? '+' : ''} ${noun} without an answer${oldestOf(length)}`
  const advice = 'a person answers in the Console of the service'
  return [{ id: 'people', tone: 'warn', what, since: oldest.since, detail: null, advice, page: '#/actions' }]
}

/** "3 sessions"; "3+ sessions" if there may be `more`. */
function count(number: number, noun: string, more = false): string {
  return `${number}${more ? '+' : ''} ${noun}${number === 1 && !more ? '' : 's'}`
}

/** Several began at different times: the time that is shown behind these words is that of the oldest. */
function oldestOf(number: number): string {
  return number === 1 ? '' : ', the oldest'
}

/** `2026-11-21T05:00:00Z`; the wait of a service may lie outside of all dates. */
function utc(at: number): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? `${at} ms` : date.toISOString().replace(/\.\d+/, '')
}
