import { Type, type Static } from 'typebox'
import type { StoredFact } from '../../../core/fact.ts'
import { isObject, parseJson } from '../../../std/json.ts'
import type { SessionSummary } from '../../../core/resource.ts'
import type { StoreReader } from '../../../core/store-reader.ts'
import { asGiven, component, nullable, oneOf, time } from '../component.ts'
import type { Held } from '../entry.ts'
import { listRoute } from '../page.ts'
import type { Route } from '../route.ts'

const Event = component(
  'Event',
  Type.Object({
    id: Type.String({ description: "The fact's id, which is the webhook-id of every callback about it." }),
    type: Type.String(),
    timestamp: Type.String({ format: 'date-time', description: 'When the sidecar stored it.' }),
    session_id: nullable(Type.String()),
    turn_id: nullable(Type.String()),
    seq: Type.Union([Type.Integer(), Type.String(), Type.Null()], {
      description:
        "The stream's seq, as text where a double cannot hold it; null on facts that are not of the stream.",
    }),
    data: asGiven(
      'As in a callback: {session}, {turn, session}, {action, session}, {call, session}, or {payload, internal_type, seq, session}.',
    ),
    seen: Type.Object(
      {
        stream: Type.Optional(time()),
        webhook: Type.Optional(time()),
        poll: Type.Optional(time()),
      },
      { description: 'When each channel first reported it.' },
    ),
  }),
)

/** A fact with the summary of its session. */
interface Shown {
  fact: StoredFact
  session: SessionSummary | null
}

export type FindBrief = (sessionId: string) => Promise<SessionSummary | null>

export function eventRoutes(store: StoreReader, summary: FindBrief): Route[] {
  return [
    listRoute(
      {
        path: '/api/events',
        summary: 'Facts, the newest first.',
        of: 'facts',
        entry: Event,
        query: {
          order: oneOf(['asc', 'desc'], {
            default: 'desc',
            description: 'Ascending order with `after` follows the log as it grows.',
          }),
          type: Type.Optional(Type.String({ description: 'Only facts of this type.' })),
          session_id: Type.Optional(Type.String({ description: 'Only facts of this session.' })),
        },
        show: ({ fact, session }: Shown) => eventOf(fact, session),
      },
      async ({ session_id: sessionId, ...query }) => {
        const { rows, more } = await store.facts({ ...query, sessionId })
        const summaries = await briefsOf(rows, summary)
        return {
          rows: rows.map((fact) => ({ fact, session: summaries.get(fact.sessionId ?? '') ?? null })),
          more,
        }
      },
    ),
  ]
}

function eventOf(fact: StoredFact, session: SessionSummary | null): Held<Static<typeof Event.schema>> {
  const timestamp = new Date(fact.at).toISOString()
  return { ...fact, timestamp, seq: seqOf(fact.seq), data: dataOf(fact, session) }
}

/**
 * The body of a state fact is its data. The body of a transcript fact is the whole frame, of which a callback has these
 * fields.
 */
function dataOf({ family, body, seq }: StoredFact, session: SessionSummary | null): Record<string, unknown> {
  const parsed = parseJson(body)
  if (!isObject(parsed)) return {}
  if (family === 'state') return parsed
  const { payload, internal_type } = parsed
  return { payload: payload ?? null, internal_type: internal_type ?? null, seq: seqOf(seq), session }
}

/** A seq beyond what a double holds is given as text, so that no reader rounds it. */
function seqOf(seq: string | null): number | string | null {
  return seq !== null && /^(0|[1-9]\d{0,14})$/.test(seq) ? Number(seq) : seq
}

/** Many transcript facts of a page are of one session, so each summary is read once. */
async function briefsOf(
  facts: readonly StoredFact[],
  summary: FindBrief,
): Promise<Map<string, SessionSummary>> {
  const ids = new Set(facts.flatMap(({ family, sessionId }) => (family === 'state' ? [] : (sessionId ?? []))))
  const found = await Promise.all([...ids].map(async (id) => [id, await summary(id)] as const))
  return new Map(found.flatMap(([id, session]) => (session === null ? [] : [[id, session] as const])))
}
