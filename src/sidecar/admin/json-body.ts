import { hasBody, type BodyReader, type DirectRequest } from './body.ts'
import { Problem } from './problem.ts'

/**
 * Reads a body, which must be JSON. Many clients label an empty body as JSON; it is the same as none. `limit`: bytes.
 * @throws {Problem | BodyRefused} when it cannot be read.
 */
export async function readJsonBody(
  request: DirectRequest,
  bodies: BodyReader,
  limit: number,
): Promise<unknown> {
  const type = request.headers['content-type']
  if (type === undefined && !hasBody(request)) return {}
  if (type?.split(';', 1)[0]?.trim().toLowerCase() !== 'application/json')
    throw new Problem('unsupported_media_type', 'a body must be application/json')
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  bodies.read(request, limit, (error, body) =>
    error === null ? resolve(body ?? Buffer.alloc(0)) : reject(error),
  )
  const text = (await promise).toString()
  if (text === '') return {}
  try {
    return JSON.parse(text, text.includes('__proto__') ? refusePrototype : undefined)
  } catch {
    throw new Problem('invalid_request', 'the body is not valid JSON')
  }
}

function refusePrototype(key: string, value: unknown): unknown {
  if (key === '__proto__') throw new TypeError('a key that no object has')
  return value
}
