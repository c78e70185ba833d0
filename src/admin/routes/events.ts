import { Type, type Static } from 'typebox'
import type { StoredFact } from '../../core/fact.ts'
import { isObject, parseJson } from '../../core/json.ts'
import type { StoreReader } from '../../core/store.ts'
import { asGiven, asked, component, nullable, oneOf, time } from '../component.ts'
import { page, pageOf, PAGING } from '../page.ts'
import { ok, route, type Route } from '../route.ts'

export const Event = component(
  'Event',
  Type.Object({
    id: Type.String({ description: "The fact's id, which is the webhook-id of every callback about it." }),
    type: Type.String(),
    timestamp: Type.String({ format: 'date-time', description: 'When the sidecar took it in.' }),
    session_id: nullable(Type.String()),
    seq: Type.Unknown({
      description: "The stream's seq, every digit of it; null on facts that did not come from the stream.",
    }),
    data: asGiven(
      'As in a callback: {session}, {turn, session}, {action, session}, {call, session}, or the frame.',
    ),
    seen: Type.Object(
      {
        stream: Type.Optional(time()),
        webhook: Type.Optional(time()),
        poll: Type.Optional(time()),
      },
      { description: 'When each channel first told of it.' },
    ),
  }),
)

export function eventRoutes(store: StoreReader): Route[] {
  return [
    route(
      {
        method: 'GET',
        path: '/api/events',
        summary: 'Facts, the newest first.',
        query: asked({
          ...PAGING,
          order: oneOf(['asc', 'desc'], {
            default: 'desc',
            description: 'Ascending order with `after` follows the log as it grows.',
          }),
          type: Type.Optional(Type.String({ description: 'Facts of this type alone.' })),
          session_id: Type.Optional(Type.String({ description: 'Facts of this session alone.' })),
        }),
        success: { status: 200, description: 'A page of facts.', content: pageOf(Event) },
      },
      async ({ query }) => {
        const { limit, after, order, type, session_id: sessionId } = query
        const facts = await store.facts({
          limit: limit + 1,
          order,
          ...(after === undefined ? {} : { after }),
          ...(type === undefined ? {} : { type }),
          ...(sessionId === undefined ? {} : { sessionId }),
        })
        return ok(page(facts, limit, ({ id }) => id, eventOf))
      },
    ),
  ]
}

function eventOf(fact: StoredFact): Static<typeof Event.schema> {
  return {
    id: fact.id,
    type: fact.type,
    timestamp: new Date(fact.at).toISOString(),
    session_id: fact.sessionId,
    seq: numberOf(fact.seq),
    data: dataOf(fact),
    seen: fact.seen,
  }
}

/** A state fact's body is its data; a transcript's is the whole frame, of which a callback shows these. */
function dataOf({ family, body }: StoredFact): Record<string, unknown> {
  const parsed = parseJson(body)
  if (!isObject(parsed)) return {}
  if (family === 'state') return parsed
  return {
    payload: parsed.payload ?? null,
    internal_type: parsed.internal_type ?? null,
    seq: parsed.seq ?? null,
  }
}

/** As the service sends it: a number, even where it does not fit a double. */
function numberOf(seq: string | null): unknown {
  return seq !== null && /^(0|[1-9]\d*)$/.test(seq) ? parseJson(seq) : seq
}
