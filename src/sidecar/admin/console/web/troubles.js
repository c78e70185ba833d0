import { count } from './format.js'
import { href } from './route.js'

const DAY = 86_400_000
/** A token that expires within a week is shown. */
const TOKEN_SOON = 7 * DAY
/** Milliseconds for which a channel may be down before it is shown. */
const CHANNEL_DOWN_AFTER = 10_000

/** Milliseconds after which an open function call is shown. */
const CALL_LONG = 60_000

/** Problems that need attention, the worst first, each with the action to take. `at`: when the problem began. */
export function troubles({ status, handlers, actions }, now) {
  return [
    ...tokenTroubles(status.token, now),
    ...channelTroubles(status.channels, now),
    ...leaderTroubles(status.replicas),
    ...replicaTroubles(status.replicas),
    ...slotTroubles(status.slots),
    ...handlers.flatMap(handlerTroubles),
    ...routeTroubles(status.routes),
    ...functionTroubles(status.needs_action),
    ...callTroubles(actions, now),
    ...actionTroubles(actions),
  ].sort((a, b) => Number(b.tone === 'bad') - Number(a.tone === 'bad'))
}

function tokenTroubles({ state, expires_at: expires }, now) {
  if (state === 'rejected') {
    return [
      trouble({
        id: 'token',
        tone: 'bad',
        what: 'The service rejects the token',
        fix: 'Create a new one and put it into service.token_file (or service.token, and restart). No request is sent to the service until then.',
        link: '#/',
      }),
    ]
  }
  if (expires === null || expires - now > TOKEN_SOON) return []
  const days = Math.max(0, Math.ceil((expires - now) / DAY))
  return [
    trouble({
      id: 'token',
      tone: 'warn',
      what: `The token expires in ${count(days, 'day')}`,
      fix: 'Create a new one and put it into service.token_file.',
      link: '#/',
    }),
  ]
}

function channelTroubles(channels, now) {
  return Object.entries(channels).flatMap(([name, { state, since, last_error: error }]) => {
    if (state === 'live' || state === 'disabled' || now - since < CHANNEL_DOWN_AFTER) return []
    return [
      trouble({
        id: `channel ${name}`,
        tone: 'bad',
        what: `Channel ${name} is ${state}`,
        fix: error ?? 'No reason is known. It is retried; the command check tests the address and the token.',
        link: '#/',
        at: since,
      }),
    ]
  })
}

/**
 * A leader renews its lease every 5 s, and loses it after 15 s. It is shown when it was last seen longer ago than this,
 * seconds.
 */
const LEADER_UNSEEN = 8

function leaderTroubles(replicas) {
  const leader = replicas.find((replica) => replica.leader && !replica.self)
  if (leader === undefined || leader.seen_seconds_ago < LEADER_UNSEEN) return []
  return [
    trouble({
      id: 'leader',
      tone: 'bad',
      what: `The leader ${nameOf(leader)} was last seen ${Math.round(leader.seen_seconds_ago)} s ago`,
      fix: 'Nothing to do: another replica takes over within 20 s.',
      link: '#/',
    }),
  ]
}

/** The name of a replica: its machine, and the beginning of its id, by which replicas on one machine differ. */
function nameOf({ name, id }) {
  return [name, id.slice(0, 8)].filter((word) => word !== '').join(' ')
}

function slotTroubles({ used, limit }) {
  if (limit === null || used < limit) return []
  return [
    trouble({
      id: 'slots',
      tone: 'warn',
      what: `${count(used, 'session')}, and service.session_slots is ${limit}: the service may refuse new ones`,
      fix: 'Delete sessions that are done. If the organization has more slots, set service.session_slots.',
      link: '#/sessions',
    }),
  ]
}

function replicaTroubles(replicas) {
  const own = replicas.find(({ self }) => self)?.configuration ?? null
  const others = replicas.filter(({ configuration }) => configuration !== null && configuration !== own)
  if (own === null || others.length === 0) return []
  const names = others.map(nameOf).join(', ')
  return [
    trouble({
      id: 'replicas',
      tone: 'warn',
      what: `Replicas with another configuration than this one: ${names}`,
      fix: 'Give all replicas the same service.base_url, scope, channels, handlers and tools.',
      link: '#/',
    }),
  ]
}

function handlerTroubles({ name, state, since, last_error: error, pending, dead }) {
  const found = []
  const waiting = `${count(pending, 'callback')} ${pending === 1 ? 'waits' : 'wait'}`
  if (state === 'down') {
    found.push(
      trouble({
        id: `down ${name}`,
        tone: 'bad',
        what: `Handler ${name} is unreachable`,
        fix: `${error === null ? '' : `${error}. `}${waiting}; the sidecar retries.`,
        link: href(['handlers']),
        at: since,
      }),
    )
  }
  if (state === 'paused') {
    found.push(
      trouble({
        id: `paused ${name}`,
        tone: 'warn',
        what: `Handler ${name} is paused`,
        fix: `${error === null ? '' : `${error}. `}${waiting} until it is resumed.`,
        link: href(['handlers']),
        at: since,
      }),
    )
  }
  if (state === 'removed') {
    return [
      trouble({
        id: `removed ${name}`,
        tone: 'warn',
        what: `Handler ${name} is not configured`,
        fix: `${waiting}${dead > 0 ? `, and there ${dead === 1 ? 'is' : 'are'} ${count(dead, 'dead letter')}` : ''}. Give a handler this name again: the deliveries are sent then.`,
        link: href(['deliveries'], { handler: name }),
      }),
    ]
  }
  if (dead > 0) {
    found.push(
      trouble({
        id: `dead ${name}`,
        tone: 'bad',
        what: `${count(dead, 'dead letter')} for ${name}`,
        fix: 'Read the response of the handler, fix the handler, then retry them.',
        link: href(['deliveries'], { status: 'dead', handler: name }),
      }),
    )
  }
  return found
}

function routeTroubles(routes) {
  return routes
    .filter(({ how }) => how === 'missing')
    .map(({ operation, reason }) =>
      trouble({
        id: `route ${operation}`,
        tone: 'warn',
        what: `The service's route for ${operation} was not found`,
        fix: reason ?? 'Set it in service.routes.',
        link: '#/',
      }),
    )
}

/** Functions that no configured tool answers. */
function functionTroubles(functions) {
  return functions.map(({ function: name, calls, oldest_at: oldest, advice }) =>
    trouble({
      id: `function ${name}`,
      tone: 'warn',
      what: `${count(calls, 'call')} of a function without a tool`,
      fix: advice,
      link: href(['actions']),
      at: oldest,
    }),
  )
}

function callTroubles({ data }, now) {
  const late = data.filter(
    (action) =>
      action.type === 'function_call' && action.advice === null && now - waitsSince(action) > CALL_LONG,
  )
  const [oldest] = late
  if (oldest === undefined) return []
  const names = [...new Set(late.map(({ name }) => name))].join(', ')
  return [
    trouble({
      id: 'calls',
      tone: 'warn',
      what: `${count(late.length, 'function call')} without an answer for long: ${names}`,
      fix: 'Is the tool configured here, and does it answer? The page of the session shows its runs and errors.',
      link: href(['sessions', oldest.session_id], { turn: oldest.turn_id ?? '' }),
      at: waitsSince(oldest),
    }),
  ]
}

function waitsSince({ created_at: created, opened_at: opened }) {
  return created ?? opened
}

function actionTroubles({ data, has_more: more }) {
  const people = data.filter(({ type }) => type !== 'function_call')
  const [oldest] = people
  if (oldest === undefined) return []
  const what = `${people.length}${more ? '+' : ''} ${people.length === 1 && !more ? 'session waits' : 'sessions wait'} for a person`
  return [
    trouble({
      id: 'actions',
      tone: 'warn',
      what,
      fix: 'Approvals and questions are answered in the Console of the service.',
      link: href(['actions']),
      at: waitsSince(oldest),
    }),
  ]
}

function trouble({ at = null, ...rest }) {
  return { ...rest, at }
}
