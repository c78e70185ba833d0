import type { ServerResponse } from 'node:http'
import type { Static, TObject } from 'typebox'
import { asked, type Component } from './component.ts'

/** The input of a route's handler; query and body are checked and complete. */
export interface Input<Query, Body> {
  /** The parts of the path that vary, decoded. */
  params: Readonly<Record<string, string>>
  query: Query
  body: Body
  /** The header by which a client resumes an event stream. */
  lastEventId: string | undefined
}

export interface Answer {
  status: number
  /** What JSON can hold; with a `contentType` it is sent as it is. */
  body: unknown
  contentType?: string
  headers?: Readonly<Record<string, string>>
  /** Streams the answer in place of `body`; the head is sent before. */
  stream?: (response: ServerResponse) => void
}

/** A body that only its type describes. */
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
  /** Statuses of the problems of this route alone. */
  problems?: readonly number[]
}

export interface Route extends Required<Definition<TObject, TObject>> {
  handle(input: Input<unknown, unknown>): Answer | Promise<Answer>
}

const NOTHING = asked({})

/** The schemas that describe a route to people are those that check its requests. */
export function route<Query extends TObject = TObject, Body extends TObject = TObject>(
  definition: Definition<Query, Body>,
  handle: (input: Input<Static<Query>, Static<Body>>) => Answer | Promise<Answer>,
): Route {
  return {
    open: false,
    query: NOTHING,
    body: NOTHING,
    problems: [],
    ...definition,
    handle,
  }
}

export function ok(body: unknown): Answer {
  return { status: 200, body }
}

export function accepted(body: unknown): Answer {
  return { status: 202, body }
}
