import { ServiceError } from '../core/errors.ts'
import type { Random } from '../std/ports.ts'
import { fillPath } from '../std/path.ts'
import type { Ids } from './discovery/parameters.ts'
import type { Call } from './transport/requester.ts'
import type { Route } from './discovery/route.ts'
import type { WholeName } from './discovery/whole.ts'
import { BODY_MAX, KEY_MAX } from './limits.ts'
import type { ActOptions } from './request.ts'

/** One call of the app: all its requests and waits end with `signal`. */
export interface Operation {
  name: WholeName
  signal: AbortSignal
  /** The remaining milliseconds. */
  left(): number
}

export interface Request {
  ids?: Ids
  query?: Readonly<Record<string, string | number | undefined>>
  /** Created when the request is sent: a route that has moved may need another path. */
  body?: () => unknown
  /**
   * The request creates something or has an effect: its idempotency value, which is generated if the app gives none.
   */
  act?: ActOptions | undefined | true
  /** The operation is idempotent, so it may be sent again. */
  repeatable?: true
  onRepeat?: () => void
  /** Bytes of the body. */
  limit?: number
  /** Bytes of the answer. */
  maxAnswer?: number
}

/** The request to send. @throws {ServiceError} `request_too_large`. */
export function callOf(operation: Operation, route: Route, request: Request, key: string | undefined): Call {
  const { name, signal } = operation
  const { ids = {}, query, body, limit = BODY_MAX, repeatable, onRepeat, maxAnswer } = request
  const text = body === undefined ? undefined : JSON.stringify(body())
  if (text !== undefined && Buffer.byteLength(text) > limit) throw tooLarge(Buffer.byteLength(text), limit)
  return {
    operation: name,
    method: route.method,
    path: fillPath(route, ids, Object.values(ids).at(-1)) + queryOf(query),
    signal,
    patience: operation.left(),
    ...(text === undefined ? {} : { text }),
    ...(key === undefined ? {} : { posting: { key } }),
    ...(repeatable === undefined ? {} : { repeatable }),
    ...(onRepeat === undefined ? {} : { onRepeat }),
    ...(maxAnswer === undefined ? {} : { maxAnswer }),
  }
}

function queryOf(query: Request['query'] = {}): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) parameters.set(name, String(value))
  return parameters.size === 0 ? '' : `?${parameters.toString()}`
}

/** @throws {TypeError} on a value that is invalid in a header. */
export function keyOf(act: Request['act'], random: Random): string | undefined {
  if (act === undefined) return undefined
  const given = act === true ? undefined : act.idempotencyKey
  if (given !== undefined && (given === '' || given.length > KEY_MAX || /[^\x21-\x7e]/.test(given)))
    throw new TypeError(`idempotencyKey: 1 to ${KEY_MAX} visible ASCII characters`)
  return given ?? random.hex(16)
}

function tooLarge(size: number, limit: number): ServiceError {
  const message = `the body has ${size} bytes, and the service accepts ${limit}; it was not sent`
  return new ServiceError({ code: 'request_too_large', status: 0, message })
}
