import type { ServerResponse } from 'node:http'
import { Type, type Static, type TSchema } from 'typebox'
import { readBody, readQuery } from './check.ts'
import type { Answer, Method } from './http.ts'
import type { Scope, Token } from './token.ts'
import type { World } from './world.ts'

/** The input of an operation after the gate accepted its request. */
export interface Call<Query, Body> {
  world: World
  params: Readonly<Record<string, string>>
  query: Query
  body: Body
  token: Token
  idempotencyKey: string | null
  /** The `Last-Event-ID` header. */
  lastEventId: string | undefined
}

/** The description of an answer in `openapi.json`. */
export interface Described {
  description: string
  /** Absent: no content. */
  schema?: TSchema
  /** `application/json` by default. */
  type?: string
  headers?: Readonly<Record<string, TSchema>>
}

interface Spec<Q extends TSchema, B extends TSchema> {
  /** Its name in the description, which a profile may spell otherwise. */
  id: string
  method: Method
  /** An OpenAPI path template. */
  path: string
  summary: string
  /** `open` needs no token, `any` accepts every valid token, `token` every token except a `cli` one. */
  access: Scope | 'token' | 'any' | 'open'
  /** The bucket that is charged: `creation` for sessions; `write` as the profile decides. */
  cost: 'creation' | 'read' | 'write'
  /** Whether the idempotency header is read: true for every POST that creates something or acts. */
  idempotent?: boolean
  query?: Q
  body?: B
  /** The body may be absent. */
  bodyOptional?: boolean
  /** Bytes; by default the general limit. */
  bodyLimit?: number
  deprecated?: boolean
  success: Described & { status: number }
  /** Error statuses beyond those that every operation may give. */
  refusals?: readonly number[]
  /** True: a header `Last-Event-ID` is read. */
  resumes?: boolean
  handle(call: Call<Static<Q>, Static<B>>): Answer | Promise<Answer>
  /** Used instead of `handle`, for an operation that writes to the connection itself. */
  stream?(call: Call<Static<Q>, Static<B>>, response: ServerResponse, headers: Record<string, string>): void
}

/**
 * An operation without its type parameters: mounted by the server and described in the description.
 */
export interface Operation extends Omit<Spec<TSchema, TSchema>, 'handle' | 'stream'> {
  /** Checks query and body. @throws {Refusal} 400 */
  read(query: Record<string, unknown>, body: unknown): { query: unknown; body: unknown }
  handle(call: Call<unknown, unknown>): Answer | Promise<Answer>
  stream?(call: Call<unknown, unknown>, response: ServerResponse, headers: Record<string, string>): void
}

/** For queries and bodies of operations that read none. */
export const nothing = Type.Object({}, { additionalProperties: false })

export function operation<Q extends TSchema = typeof nothing, B extends TSchema = typeof nothing>(
  spec: Spec<Q, B>,
): Operation {
  const read = (query: Record<string, unknown>, body: unknown): { query: Static<Q>; body: Static<B> } => {
    const absent = body === undefined && (spec.body === undefined || spec.bodyOptional === true)
    return {
      query: readQuery(spec.query ?? nothing, query) as Static<Q>,
      body: readBody(spec.body ?? nothing, absent ? {} : body) as Static<B>,
    }
  }
  return {
    ...spec,
    idempotent: spec.idempotent ?? spec.method === 'POST',
    read,
    // The server only passes on the result of `read`, so the types match.
    handle: (call) => spec.handle(call as Call<Static<Q>, Static<B>>),
    ...(spec.stream === undefined
      ? {}
      : {
          stream: (call, response, headers) =>
            spec.stream?.(call as Call<Static<Q>, Static<B>>, response, headers),
        }),
  }
}

/** A reference to a named shape of the description. */
export function shape(name: string): TSchema {
  return Type.Ref(`#/components/schemas/${name}`)
}
