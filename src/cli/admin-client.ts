import type { Config } from '../sidecar/config/config.ts'
import { urlOf } from '../sidecar/config/listen.ts'
import { codeOf, messageOf, OperatorError } from '../std/errors.ts'
import { VERSION } from '../sidecar/version.ts'
import { isObject, numberOf, parseJson, stringOf, type JsonObject } from '../std/json.ts'
import type { Environment } from '../sidecar/config/expand.ts'
import { exchange, TIMEOUT } from './exchange.ts'

/** Options of every command on a running sidecar. */
export interface AdminOptions {
  url?: string
  config?: string
  tokenFile?: string
}

type Query = Record<string, string | number | undefined>

export interface AdminClient {
  /**
   * @throws {OperatorError} with a plain message for every failure.
   */
  get(path: string, query?: Query): Promise<JsonObject>
  post(path: string, body?: JsonObject): Promise<JsonObject>
  /** Walks the pages of a list until `limit` entries. */
  list(path: string, query: Query, limit: number): Promise<JsonObject[]>
  /** Every entry of a list; memory holds one page at a time. */
  each(path: string, query: Query): AsyncIterable<JsonObject>
}

/** No sidecar answers, or it cannot answer now: a later try may succeed. */
export class UnreachableError extends OperatorError {}

const DEFAULT_URL = 'http://127.0.0.1:8481'
/** Entries per page; the maximum of the API. */
const PAGE = 100
const MAX_TOKEN_FILE = 64 * 1024
const WRONG_TOKEN = 'give the admin.token of that sidecar in SIDECAR_ADMIN_TOKEN, or by --token-file or -c'

/**
 * A client of the admin API of a running sidecar. Its address comes from `--url`, SIDECAR_ADMIN_URL or the
 * configuration, in this order; its token from `--token-file`, SIDECAR_ADMIN_TOKEN, SIDECAR_ADMIN_TOKEN_FILE or the
 * configuration.
 */
export async function adminClient(options: AdminOptions, env: Environment): Promise<AdminClient> {
  const configured = options.config === undefined ? null : await adminOf(options.config, env)
  const given = options.url ?? nonEmpty(env['SIDECAR_ADMIN_URL'])
  const base = originOf(given ?? (configured === null ? DEFAULT_URL : urlOf(configured.listen)))
  const token = (await tokenFrom(options, env)) ?? configured?.token ?? null

  const headers = {
    accept: 'application/json',
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
  }

  async function send(method: 'GET' | 'POST', path: string, body?: JsonObject): Promise<JsonObject> {
    const { status, text } = await ask(base, path, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const parsed = parse(text)
    if (status >= 200 && status < 300) {
      if (isObject(parsed)) return parsed
      throw new OperatorError(`${base}${path} did not answer with a JSON object`, 1, ADDRESS)
    }
    const problem = isObject(parsed) ? parsed : {}
    if (status === 404 || status === 405) await requireRoute(base, method, path, headers)
    throw refusal(base, path, { status, problem, hasToken: token !== null })
  }

  /** Entries of a list, page by page, at most `limit`. */
  async function* walk(path: string, query: Query, limit: number): AsyncGenerator<JsonObject> {
    let { after } = query
    for (let left = limit; left > 0;) {
      const page = await send('GET', path + queryOf({ ...query, limit: Math.min(PAGE, left), after }))
      const data = Array.isArray(page['data']) ? page['data'].filter(isObject) : []
      yield* data
      left -= data.length
      const last = stringOf(page['last_id'])
      if (page['has_more'] !== true || data.length === 0 || last === null) return
      after = last
    }
  }

  return {
    get: (path, query = {}) => send('GET', path + queryOf(query)),
    post: (path, body) => send('POST', path, body),
    async list(path, query, limit) {
      const found: JsonObject[] = []
      for await (const row of walk(path, query, limit)) found.push(row)
      return found
    },
    each: (path, query) => walk(path, query, Infinity),
  }
}

/**
 * A sidecar answers 404: it may lack the requested resource, or be of a version that lacks the route.
 * @throws {OperatorError} when its version does not have the route.
 */
async function requireRoute(
  base: string,
  method: 'GET' | 'POST',
  path: string,
  headers: Record<string, string>,
): Promise<void> {
  const { paths, info } = await describe()
  if (!isObject(paths) || !isObject(info)) return
  const given = path.split('?')[0]?.split('/') ?? []
  const known = Object.entries(paths).some(
    ([template, operations]) =>
      isObject(operations) && method.toLowerCase() in operations && fits(template.split('/'), given),
  )
  if (known) return
  throw new OperatorError(
    `the sidecar at ${base} is version ${stringOf(info['version']) ?? 'unknown'} and cannot do this (it has no ${method} ` +
      `${path}); this program is version ${VERSION}`,
    1,
    'run the same version of both',
  )

  async function describe(): Promise<JsonObject> {
    try {
      const parsed = parse((await ask(base, '/openapi.json', { method: 'GET', headers })).text)
      return isObject(parsed) ? parsed : {}
    } catch {
      return {}
    }
  }
}

/**
 * Loading a configuration takes longer than a request to a sidecar, so it is imported only when
 * needed.
 */
async function adminOf(file: string, env: Environment): Promise<Config['admin']> {
  const { loadSection } = await import('../sidecar/config/load.ts')
  return await loadSection(file, env, 'admin')
}

function fits(template: readonly string[], given: readonly string[]): boolean {
  return (
    template.length === given.length && template.every((part, i) => part.startsWith('{') || part === given[i])
  )
}

function originOf(url: string): string {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new OperatorError(`"${url}" is not an http address`, 2, `give one such as ${DEFAULT_URL}`)
  }
  return url.replace(/\/+$/, '')
}

async function tokenFrom(options: AdminOptions, env: Environment): Promise<string | null> {
  const direct = nonEmpty(env['SIDECAR_ADMIN_TOKEN'])
  const file = options.tokenFile ?? (direct === null ? nonEmpty(env['SIDECAR_ADMIN_TOKEN_FILE']) : null)
  if (file === null) return direct === null ? null : tokenIn(direct, 'SIDECAR_ADMIN_TOKEN')
  const { readSmallFile } = await import('../sidecar/config/secrets.ts')
  const text = await readSmallFile(file, MAX_TOKEN_FILE).catch((error: unknown) => {
    throw new OperatorError(messageOf(error), 2)
  })
  return tokenIn(text.trim(), file)
}

/** Other characters cannot be sent in a header. */
function tokenIn(text: string, place: string): string {
  if (/^[\x20-\x7e]*$/.test(text)) return text
  throw new OperatorError(`${place} does not contain exactly one token`, 2)
}

function nonEmpty(text: string | undefined): string | null {
  return text === undefined || text === '' ? null : text
}

function queryOf(query: Query): string {
  const given = Object.entries(query).flatMap(([key, value]) =>
    value === undefined ? [] : [[key, String(value)]],
  )
  return given.length === 0 ? '' : `?${new URLSearchParams(Object.fromEntries(given)).toString()}`
}

async function ask(
  base: string,
  path: string,
  init: Parameters<typeof exchange>[1],
): ReturnType<typeof exchange> {
  try {
    return await exchange(base + path, init)
  } catch (error) {
    throw unreachable(base, error)
  }
}

function parse(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return null
  }
}

function unreachable(base: string, error: unknown): UnreachableError {
  const code = codeOf(error)
  if (code === 'ECONNREFUSED') {
    return new UnreachableError(
      `no sidecar answers at ${base}`,
      1,
      'start one with "session-sidecar run -c FILE", or give its address with --url',
    )
  }
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return new UnreachableError(`the host of ${base} is unknown`, 1, ADDRESS)
  if (code === 'ABORT_ERR')
    return new UnreachableError(`${base} did not answer within ${TIMEOUT / 1000} s`, 1, ADDRESS)
  return new UnreachableError(`cannot reach ${base}: ${messageOf(error)}`, 1, ADDRESS)
}

interface Refused {
  status: number
  problem: JsonObject
  /** Whether the request had a token. */
  hasToken: boolean
}

function refusal(base: string, path: string, { status, problem, hasToken }: Refused): OperatorError {
  const detail = stringOf(problem['detail']) ?? stringOf(problem['title'])
  if (status === 401 && hasToken) {
    const why = detail === null ? '' : ` (${detail})`
    return new OperatorError(`${base} refuses the admin token${why}`, 1, WRONG_TOKEN)
  }
  if (status === 401 || status === 403) {
    return new OperatorError(
      `${base} requires its admin token${detail === null ? '' : ` (${detail})`}`,
      1,
      'set SIDECAR_ADMIN_TOKEN, or give --token-file or -c',
    )
  }
  if (status === 404 && detail === null) {
    return new OperatorError(
      `${base}${path} does not exist`,
      1,
      `${ADDRESS}; a sidecar that does not listen on loopback has an API only with admin.token`,
    )
  }
  const reason = detail?.replace(/\.$/, '') ?? 'no reason given'
  const fix = status === 404 ? (LISTS.find(([name]) => reason.startsWith(name))?.[1] ?? null) : null
  const Answered = status >= 500 ? UnreachableError : OperatorError
  return new Answered(`${base}${path} answered ${status}: ${reason}`, 1, fix)
}

const ADDRESS = 'give the address of admin.listen with --url'

/** What the sidecar did not find, and the command that lists what exists. */
const LISTS = [
  ['no handler', '"session-sidecar handlers" lists the names'],
  ['there is no delivery', '"session-sidecar deliveries" lists the ids'],
] as const

/** A time of the API, milliseconds since the epoch or ISO 8601. */
export function timeOf(value: unknown): number | null {
  const text = stringOf(value)
  if (text === null) return numberOf(value)
  const time = Date.parse(text)
  return Number.isNaN(time) ? null : time
}
