import { isObject, numberOf, stringOf, type JsonObject } from '../../std/json.ts'
import { timeOf } from '../admin-client.ts'
import { field } from '../reply.ts'
import { count, span } from '../text.ts'

/** A problem that needs attention. */
export interface Need {
  /** `bad`: something does not work. `warn`: something waits. */
  tone: 'bad' | 'warn'
  text: string
  /** The action to take. */
  advice: string
}

export interface Seen {
  status: JsonObject
  handlers: readonly JsonObject[]
  actions: readonly JsonObject[]
  /** Some of the pending deliveries. */
  pending: readonly JsonObject[]
  /** Milliseconds. */
  now: number
}

const DAY = 86_400_000
const TOKEN_SOON = 7 * DAY
/** Milliseconds for which a channel may be disconnected: it reconnects by itself. */
const CHANNEL_GRACE = 10_000
/** Seconds: a leader renews its lease every five, and loses it after fifteen. */
const LEADER_UNSEEN = 8
/** Milliseconds after which an open function call is listed. */
const CALL_LONG = 60_000

/** The problems that need attention, failures first. */
export function needsOf(seen: Seen): Need[] {
  return [
    ...tokenNeeds(seen),
    ...storeNeeds(seen),
    ...holdNeeds(seen),
    ...leaderNeeds(seen),
    ...replicaNeeds(seen),
    ...channelNeeds(seen),
    ...seen.handlers.flatMap((handler) => handlerNeeds(handler, seen.now)),
    ...seen.handlers.flatMap((handler) => refusalNeeds(handler, seen)),
    ...slotNeeds(seen),
    ...routeNeeds(seen),
    ...functionNeeds(seen),
    ...callNeeds(seen),
    ...personNeeds(seen),
  ].sort((a, b) => Number(b.tone === 'bad') - Number(a.tone === 'bad'))
}

function tokenNeeds({ status, now }: Seen): Need[] {
  const token = sectionOf(status, 'token')
  const advice = 'create a new one and put it into service.token_file'
  if (field(token, 'state') === 'rejected')
    return [{ tone: 'bad', text: 'the service rejects the token', advice }]
  const expiresAt = timeOf(token['expires_at'])
  if (expiresAt === null || expiresAt - now > TOKEN_SOON) return []
  const left =
    expiresAt > now ? `expires in ${span(expiresAt - now)}` : `expired ${span(now - expiresAt)} ago`
  return [{ tone: 'warn', text: `the token ${left}`, advice }]
}

function storeNeeds({ status, now }: Seen): Need[] {
  const store = sectionOf(status, 'store')
  if (field(store, 'state') !== 'refusing') return []
  const text = `the store refuses writes${since(store, now)}: ${field(store, 'reason') || 'no reason given'}`
  return [{ tone: 'bad', text, advice: 'free disk space, or end the program that locks the database' }]
}

function holdNeeds({ status, now }: Seen): Need[] {
  const until = timeOf(sectionOf(status, 'service')['held_until'])
  if (until === null || until <= now) return []
  const text = `the service asked the sidecar to wait: no requests for another ${span(until - now)}`
  return [{ tone: 'warn', text, advice: 'nothing to do: the sidecar continues then; callbacks continue now' }]
}

/**
 * Another replica shows the state that the leader reported last. So a leader that has just died looks alive until a
 * replica takes over.
 */
function leaderNeeds({ status }: Seen): Need[] {
  const leader = rowsOf(status, 'replicas').find((row) => row['leader'] === true && row['self'] !== true)
  const unseen = numberOf(leader?.['seen_seconds_ago']) ?? 0
  if (leader === undefined || unseen < LEADER_UNSEEN) return []
  const text = `the leader ${nameOf(leader)} was last seen ${Math.round(unseen)} s ago`
  return [{ tone: 'bad', text, advice: 'nothing to do: another replica takes over within 20 s' }]
}

/** Several replicas may have the name of one machine: the id distinguishes them. */
function nameOf(replica: JsonObject): string {
  return [field(replica, 'name'), field(replica, 'id').slice(0, 8)].filter((word) => word !== '').join(' ')
}

function slotNeeds({ status }: Seen): Need[] {
  const { used, limit } = sectionOf(status, 'slots')
  const most = numberOf(limit)
  if (most === null || (numberOf(used) ?? 0) < most) return []
  const text = `${count(numberOf(used) ?? 0, 'session')}, and service.session_slots is ${most}: the service may refuse new ones`
  const advice =
    'delete sessions that are done; if the organization has more slots, set service.session_slots'
  return [{ tone: 'warn', text, advice }]
}

function replicaNeeds({ status }: Seen): Need[] {
  const rows = rowsOf(status, 'replicas')
  const own = rows.find((row) => row['self'] === true)?.['configuration']
  const others = rows.filter(({ configuration }) => stringOf(configuration) !== null && configuration !== own)
  if (stringOf(own) === null || others.length === 0) return []
  const names = others.map(nameOf).join(', ')
  const advice = 'give all replicas the same service.base_url, scope, channels, handlers and tools'
  return [{ tone: 'warn', text: `replicas with another configuration than this one: ${names}`, advice }]
}

function channelNeeds({ status, now }: Seen): Need[] {
  return Object.entries(sectionOf(status, 'channels')).flatMap(([name, channel]) => {
    if (!isObject(channel)) return []
    const state = field(channel, 'state')
    const began = timeOf(channel['since']) ?? 0
    if (state === 'live' || state === 'disabled' || now - began < CHANNEL_GRACE) return []
    const why = field(channel, 'last_error') || 'no reason given'
    const text = `channel ${name} is ${state}${since(channel, now)}: ${why}`
    const advice =
      state === 'stopped'
        ? 'a new token starts it again'
        : 'it is retried; "session-sidecar check -c FILE" tests the address and the token'
    return [{ tone: 'bad', text, advice } as const]
  })
}

function handlerNeeds(handler: JsonObject, now: number): Need[] {
  const [name, state] = [field(handler, 'name'), field(handler, 'state')]
  const [pending, dead] = [numberOf(handler['pending']) ?? 0, numberOf(handler['dead']) ?? 0]
  const why = stringOf(handler['last_error'])
  const waiting = `${count(pending, 'delivery', 'deliveries')} pending`
  const needs: Need[] = []
  if (state === 'down' || state === 'paused') {
    needs.push({
      tone: state === 'down' ? 'bad' : 'warn',
      text: `handler ${name} is ${state}${since(handler, now)}, ${waiting}${why === null ? '' : `: ${why}`}`,
      advice:
        state === 'down'
          ? 'start the app; deliveries are retried'
          : `session-sidecar handlers resume ${name}`,
    })
  }
  if (state === 'removed') {
    const text = `handler ${name} is not configured, ${waiting}${dead > 0 ? `, ${count(dead, 'dead letter')}` : ''}`
    return [{ tone: 'warn', text, advice: 'give a handler this name again: the deliveries are sent then' }]
  }
  if (dead > 0) {
    needs.push({
      tone: 'bad',
      text: `handler ${name} has ${count(dead, 'dead letter')}`,
      advice: `session-sidecar deliveries retry --dead --handler ${name}`,
    })
  }
  return needs
}

/** A handler that answers, but does not accept; the reason is in an attempt of a pending delivery. */
function refusalNeeds(handler: JsonObject, { pending }: Seen): Need[] {
  const name = field(handler, 'name')
  const failed = pending.find((one) => field(one, 'handler') === name && rowsOf(one, 'attempts').length > 0)
  const last = failed === undefined ? undefined : rowsOf(failed, 'attempts').at(-1)
  if (field(handler, 'state') !== 'up' || failed === undefined || last === undefined) return []
  const status = numberOf(last['status'])
  const answer = status === null ? field(last, 'error') : `it answered ${status}`
  const text = `handler ${name} does not accept a fact: ${answer}`
  if (status === 401 || status === 403)
    return [
      { tone: 'bad', text, advice: 'it refuses the signature: give it the secret of the configuration' },
    ]
  return [{ tone: 'warn', text, advice: `session-sidecar deliveries show ${field(failed, 'id')}` }]
}

function routeNeeds({ status }: Seen): Need[] {
  return rowsOf(status, 'routes')
    .filter((route) => field(route, 'how') === 'missing')
    .map((route) => ({
      tone: 'warn',
      text: `the service's route for ${field(route, 'operation')} was not found`,
      advice: field(route, 'reason') || 'set it in service.routes',
    }))
}

function functionNeeds({ status, now }: Seen): Need[] {
  return rowsOf(status, 'needs_action').map((row) => {
    const calls = count(numberOf(row['calls']) ?? 0, 'call')
    const oldest = timeOf(row['oldest_at'])
    const age = oldest === null ? '' : `, the oldest for ${span(Math.max(0, now - oldest))}`
    return { tone: 'warn', text: `${calls} of a function without a tool${age}`, advice: field(row, 'advice') }
  })
}

/** Calls of functions without a tool have a line of their own, with advice. */
function callNeeds({ actions, now }: Seen): Need[] {
  const late = actions.filter(
    (action) =>
      field(action, 'type') === 'function_call' &&
      stringOf(action['advice']) === null &&
      now - openedAt(action) > CALL_LONG,
  )
  if (late.length === 0) return []
  const names = [...new Set(late.map((action) => field(action, 'name')))].join(', ')
  const text = `${count(late.length, 'function call')} without an answer for over ${span(CALL_LONG)}: ${names}`
  return [
    { tone: 'warn', text, advice: 'session-sidecar calls shows how often the tool ran and why it failed' },
  ]
}

function personNeeds({ actions, now }: Seen): Need[] {
  const people = actions.filter((action) => field(action, 'type') !== 'function_call')
  if (people.length === 0) return []
  const oldest = Math.min(...people.map(openedAt))
  const what = count(people.length, 'approval or question', 'approvals and questions')
  const text = `${what} without an answer, the oldest for ${span(Math.max(0, now - oldest))}`
  return [{ tone: 'warn', text, advice: "a person answers them in the service's Console" }]
}

function openedAt(action: JsonObject): number {
  return timeOf(action['created_at']) ?? timeOf(action['opened_at']) ?? Infinity
}

function since(row: JsonObject, now: number): string {
  const at = timeOf(row['since'])
  return at === null ? '' : ` for ${span(Math.max(0, now - at))}`
}

function sectionOf(status: JsonObject, name: string): JsonObject {
  const section = status[name]
  return isObject(section) ? section : {}
}

/** The entries of a list of the status. */
export function rowsOf(status: JsonObject, key: string): JsonObject[] {
  const rows = status[key]
  return Array.isArray(rows) ? rows.filter(isObject) : []
}
