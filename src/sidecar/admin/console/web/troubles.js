import { count } from './format.js'
import { href } from './route.js'

const DAY = 86_400_000
/** A token that expires within a week is shown. */
const TOKEN_SOON = 7 * DAY
/** Milliseconds for which a channel may be down before it is shown. */
const CHANNEL_DOWN_AFTER = 10_000

/** Milliseconds after which an open function call is shown. */
const CALL_LONG = 60_000

/**
 * Problems that need attention, the worst first, each with the action to take. `at`: since when.
 */
export function troubles({ status, handlers, actions }, now) {
  return [
    ...tokenTroubles(status.token, now),
    ...channelTroubles(status.channels, now),
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
      trouble(
        'token',
        'bad',
        'The service rejects the token',
        'Create a new one and put it into service.token_file (or service.token, and restart). No request is sent to the service until then.',
        '#/',
      ),
    ]
  }
  if (expires === null || expires - now > TOKEN_SOON) return []
  const days = Math.max(0, Math.ceil((expires - now) / DAY))
  return [
    trouble(
      'token',
      'warn',
      `The token expires in ${count(days, 'day')}`,
      'Create a new one and put it into service.token_file.',
      '#/',
    ),
  ]
}

function channelTroubles(channels, now) {
  return Object.entries(channels).flatMap(([name, { state, since, last_error: error }]) => {
    if (state === 'live' || state === 'disabled' || now - since < CHANNEL_DOWN_AFTER) return []
    return [
      trouble(
        `channel ${name}`,
        'bad',
        `Channel ${name} is ${state}`,
        error ?? 'No reason is known. The other channels continue.',
        '#/',
        since,
      ),
    ]
  })
}

function handlerTroubles({ name, state, since, last_error: error, pending, dead }) {
  const found = []
  const waiting = `${count(pending, 'callback')} ${pending === 1 ? 'waits' : 'wait'}`
  if (state === 'down') {
    found.push(
      trouble(
        `down ${name}`,
        'bad',
        `Handler ${name} is unreachable`,
        `${error === null ? '' : `${error}. `}${waiting}; the sidecar retries.`,
        href(['handlers']),
        since,
      ),
    )
  }
  if (state === 'paused') {
    found.push(
      trouble(
        `paused ${name}`,
        'warn',
        `Handler ${name} is paused`,
        `${error === null ? '' : `${error}. `}${waiting} until it is resumed.`,
        href(['handlers']),
        since,
      ),
    )
  }
  if (dead > 0) {
    found.push(
      trouble(
        `dead ${name}`,
        'bad',
        `${count(dead, 'dead letter')} for ${name}`,
        'Read the response of the handler, fix the handler, then retry them.',
        href(['deliveries'], { status: 'dead', handler: name }),
      ),
    )
  }
  return found
}

function routeTroubles(routes) {
  return routes
    .filter(({ how }) => how === 'missing')
    .map(({ operation, reason }) =>
      trouble(
        `route ${operation}`,
        'warn',
        `The service's route for ${operation} was not found`,
        reason ?? 'Set it in service.routes.',
        '#/',
      ),
    )
}

/** Functions that no configured tool answers. */
function functionTroubles(functions) {
  return functions.map(({ function: name, calls, oldest_at: oldest, advice }) =>
    trouble(
      `function ${name}`,
      'warn',
      `${count(calls, 'call')} of a function without a tool`,
      advice,
      href(['actions']),
      oldest,
    ),
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
    trouble(
      'calls',
      'warn',
      `${count(late.length, 'function call')} without an answer for long: ${names}`,
      'Is the tool configured here, and does it answer? The page of the session shows its runs and errors.',
      href(['sessions', oldest.session_id], { turn: oldest.turn_id ?? '' }),
      waitsSince(oldest),
    ),
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
    trouble(
      'actions',
      'warn',
      what,
      'Approvals and questions are answered in the Console of the service.',
      href(['actions']),
      waitsSince(oldest),
    ),
  ]
}

function trouble(id, tone, what, fix, link, at = null) {
  return { id, tone, what, fix, link, at }
}
