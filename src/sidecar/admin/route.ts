import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Static, TObject } from 'typebox'
import { asked, type Component } from './component.ts'

/** The content type of an answer that is text, not JSON. */
export type TextType = 'text/plain' | 'text/event-stream'

interface Definition<Query extends TObject, Body extends TObject> {
  method: 'GET' | 'POST'
  /** As OpenAPI writes it: `/api/sessions/{id}`. */
  path: string
  summary: string
  /** Open to all on every address, without a token; unknown parameters are ignored. */
  open?: boolean
  query?: Query
  body?: Body
  success: { status: number; description: string; content: Component | TextType }
  /** Statuses of problems that not every route has. */
  problems?: readonly number[]
}

/** The description of a route, from which the OpenAPI document is made. Its schemas also check the requests. */
export type Description = Required<Definition<TObject, TObject>>

/** A request whose query and body are checked and complete. */
export interface Asked<Query, Body> extends Pick<FastifyRequest, 'headers'> {
  /** The parts of the path that vary, decoded. */
  params: Readonly<Record<string, string>>
  query: Query
  body: Body
}

export interface Route extends Description {
  /** @returns what is sent as JSON; a route of text sends its answer itself. */
  handle(request: Asked<unknown, unknown>, reply: FastifyReply): unknown
}

const NOTHING = asked({})

export function described<Query extends TObject, Body extends TObject>(
  definition: Definition<Query, Body>,
): Description {
  return { open: false, query: NOTHING, body: NOTHING, problems: [], ...definition }
}

export function route<Query extends TObject = TObject, Body extends TObject = TObject>(
  definition: Definition<Query, Body>,
  handle: (request: Asked<Static<Query>, Static<Body>>, reply: FastifyReply) => unknown,
): Route {
  return { ...described(definition), handle }
}
