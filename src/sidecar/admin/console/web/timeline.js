/**
 * Groups the facts of a session by turn, in the order of the log. A fact without a turn belongs to
 * the turn under way; a user message belongs to the turn that it starts.
 */
export function groupByTurn(facts) {
  const groups = new Map()
  const put = (turnId, fact) => {
    const group = groups.get(turnId)
    if (group === undefined) groups.set(turnId, { turnId, facts: [fact] })
    else group.facts.push(fact)
  }
  let current = null
  let early = []
  for (const fact of facts) {
    if (fact.turn_id !== null) {
      current = fact.turn_id
      for (const before of early) put(current, before)
      early = []
      put(current, fact)
    } else if (current === null || fact.type === 'user.message' || early.length > 0) early.push(fact)
    else put(current, fact)
  }
  for (const fact of early) put(null, fact)
  return [...groups.values()]
}

/**
 * The channel that reported a fact first, and the delays of the others: `[{ channel, at, later }]`.
 */
export function sightings(seen) {
  const entries = Object.entries(seen).sort(([, a], [, b]) => a - b)
  return entries.map(([channel, at]) => ({ channel, at, later: at - entries[0][1] }))
}

/** The content of a fact in a line. */
export function summary({ type, data }) {
  const { payload, action, call, turn, session } = data
  if (action !== undefined) return `${action.type} ${asked(action)}`
  if (call !== undefined) return [call.name, call.outcome, call.error].filter(Boolean).join(', ')
  if (turn !== undefined) {
    const artifacts = data.artifacts?.length ?? 0
    return [
      turn.error === null || turn.error === undefined ? null : compact(turn.error),
      type === 'turn.settled'
        ? `artifacts ${turn.artifacts}${artifacts === 0 ? '' : `: ${artifacts} published`}`
        : null,
    ]
      .filter(Boolean)
      .join(', ')
  }
  if (payload !== undefined && payload !== null) return said(payload)
  return typeof session?.title === 'string' ? session.title : ''
}

/**
 * The request of an entry of required_actions: a function with its arguments, or the text of a
 * question.
 */
export function asked({ name, question, message, text, arguments: given }) {
  return [name, question, message, text, compact(given)]
    .filter((word) => typeof word === 'string' && word !== '')
    .join(' ')
}

/** The fields of a payload that are for people, else all of it. */
function said(payload) {
  const { text, toolName, name, output, args, path, message } = payload
  const words = [toolName ?? name, compact(args ?? payload.arguments), text, output, path, message]
  const line = words.filter((word) => typeof word === 'string' && word !== '').join(' ')
  return line === '' ? compact(payload) : line
}

function compact(value) {
  if (value === undefined || value === null) return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text === '{}' ? '' : text.slice(0, 400)
}
