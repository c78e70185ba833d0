import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { BodyReader } from './body.ts'

/**
 * Makes a listener take JSON bodies and no others. Many clients say that an empty body is JSON. `limit`: bytes of a body
 * whose route names no other; `shared`: of all long ones together.
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
