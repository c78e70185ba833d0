import { sawVersion, setConnection } from './connection.js'

/** Time limits of a read and of an action, milliseconds. The test of a handler takes up to 25 s. */
const TIMEOUT = { GET: 15_000, POST: 30_000 }
/** Number of answers that are kept for comparison with the next ones. */
const KEPT = 50

/** An error answer of the sidecar, with its message. */
class Refused extends Error {
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

const answers = new Map()

/** @returns the same object as last time when nothing changed. */
export async function get(path, query = {}) {
  const url = `${path}${queryOf(query)}`
  const before = answers.get(url)
  const response = await send(url, { headers: before === undefined ? {} : { 'if-none-match': before.etag } })
  if (response.status === 304 && before !== undefined) return before.body
  const body = await response.json()
  const etag = response.headers.get('etag')
  answers.delete(url)
  if (etag !== null) answers.set(url, { etag, body })
  if (answers.size > KEPT) answers.delete(answers.keys().next().value)
  return body
}

export async function post(path, body = {}) {
  const response = await send(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return response.status === 204 ? null : await response.json()
}

/** Entries of a list, at most `limit`. */
async function list(path, query = {}, limit = 100) {
  const rows = []
  let after
  for (;;) {
    const page = await get(path, { ...query, limit: Math.min(100, limit - rows.length), after })
    rows.push(...page.data)
    if (!page.has_more || rows.length >= limit) return { rows, hasMore: page.has_more }
    after = page.last_id
  }
}

/**
 * Reads a whole list the first time, then only its newest page. It reads the whole list again when
 * that page does not overlap with the known entries, or when an older entry `changes`.
 */
export function follow(path, query, limit, changes = () => false) {
  let kept = null
  let newest = null
  return async () => {
    const page = await get(path, { ...query, limit: Math.min(100, limit) })
    if (page === newest && kept !== null && !kept.rows.some(changes)) return kept
    newest = page
    const last = page.data.at(-1)
    const end = kept === null || last === undefined ? -1 : kept.rows.findIndex(({ id }) => id === last.id)
    const older = kept?.rows.slice(end + 1) ?? []
    if (!page.has_more) kept = { rows: page.data, hasMore: false }
    else if (end === -1 || older.some(changes)) kept = await list(path, query, limit)
    else kept = { rows: [...page.data, ...older], hasMore: kept.hasMore }
    return kept
  }
}

export function forgetAnswers() {
  answers.clear()
}

async function send(url, options) {
  let response
  try {
    response = await fetch(url, {
      ...options,
      headers: { ...options.headers, 'x-sidecar-console': '1' },
      signal: AbortSignal.timeout(TIMEOUT[options.method ?? 'GET']),
    })
  } catch (error) {
    setConnection('unreachable')
    throw new Error('the sidecar does not answer', { cause: error })
  }
  sawVersion(response.headers.get('x-sidecar-version'))
  if (response.ok || response.status === 304) {
    if (!url.startsWith('console/')) setConnection('here')
    return response
  }
  const problem = await response.json().catch(() => ({}))
  if (response.status === 401 && !url.startsWith('console/')) setConnection('signed_out')
  throw new Refused(response.status, problem.detail ?? `the sidecar answered ${response.status}`)
}

export function queryOf(query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}
