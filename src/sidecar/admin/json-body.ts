import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { BodyReader } from './body.ts'

/**
 * Makes a listener accept only JSON bodies. Many clients label an empty body as JSON. `limit`:
 * default limit of a body in bytes; `shared`: bytes of all long bodies together.
 */
export function readJsonBodies(
  app: FastifyInstance,
  { limit, shared }: { limit: number; shared: number },
): void {
  const bodies = new BodyReader(shared)
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    'application/json',
    (
      request: FastifyRequest,
      payload: IncomingMessage,
      done: (error: Error | null, body?: unknown) => void,
    ) =>
      bodies.read(payload, request.routeOptions.bodyLimit ?? limit, (error, body) => {
        if (error !== null || body === undefined || body.length === 0) return done(error)
        void parse(request, body.toString(), done)
      }),
  )
}
