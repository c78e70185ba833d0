import { Type, type Static } from 'typebox'
import { isObject } from '../../../std/json.ts'
import type { HandlerStatus, Trial } from '../../../core/handler.ts'
import type { StoreReader } from '../../../core/store-reader.ts'
import type { AdminActions } from '../actions.ts'
import { asked, component, nullable, oneOf, time } from '../component.ts'
import type { Held } from '../entry.ts'
import { guess } from '../../../std/nearest.ts'
import { listRoute, slice } from '../page.ts'
import { Problem } from '../problem.ts'
import { route, type Route } from '../route.ts'
import { timeOf } from '../time.ts'

const Handler = component(
  'Handler',
  Type.Object({
    name: Type.String(),
    state: oneOf<HandlerStatus['state'] | 'removed'>(['up', 'down', 'paused', 'removed'], {
      description:
        'down: the handler is unreachable, and a probe continues. removed: it is not configured, and its deliveries wait.',
    }),
    since: nullable(time(), 'When this state began.'),
    last_error: nullable(Type.String()),
    pending: Type.Integer({ description: 'The backlog: pending deliveries.' }),
    oldest_pending_at: nullable(time(), 'When the oldest of them was stored.'),
    dead: Type.Integer({ description: 'Deliveries that were given up and not yet retried.' }),
  }),
)

export type HandlerBacklog = Held<Static<typeof Handler.schema>>

const HandlerChange = component(
  'HandlerChange',
  Type.Object({ handler: Type.String(), paused: Type.Boolean() }),
)

const Replayed = component(
  'Replayed',
  Type.Object({ handler: Type.String(), count: Type.Integer({ description: 'Facts that are due again.' }) }),
)

const HandlerTested = component(
  'HandlerTested',
  Type.Object({
    handler: Type.String(),
    id: Type.String({
      description: 'The id of the fact, which begins with evt_test_. The fact is not stored.',
    }),
    type: Type.String(),
    wanted: Type.Boolean({ description: 'Whether the events of the handler select this type.' }),
    outcome: oneOf<Trial['outcome']>(['delivered', 'retry', 'dead', 'unreachable', 'gone', 'aborted'], {
      description: 'The outcome that a real fact would have. gone: the handler answered 410.',
    }),
    status: nullable(Type.Integer(), 'The status of its answer.'),
    error: nullable(Type.String()),
    answer: nullable(Type.String(), 'The first 1 KiB of its failed response.'),
    ms: Type.Number({ description: 'Duration, milliseconds.' }),
  }),
)

export function handlerRoutes(store: StoreReader, actions: AdminActions): Route[] {
  return [
    listRoute(
      {
        path: '/api/handlers',
        summary:
          'The handlers and their backlogs; also handlers that were removed and still have deliveries.',
        of: 'handlers',
        entry: Handler,
        query: {},
        show: (handler: HandlerBacklog) => handler,
      },
      async (query) => slice(await backlogs(store, actions), query),
    ),
    ...(['pause', 'resume'] as const).map((change) =>
      route(
        {
          method: 'POST',
          path: `/api/handlers/{name}/${change}`,
          summary:
            change === 'pause' ? 'Stops one handler; its backlog is kept.' : 'Resumes a paused handler.',
          success: { status: 202, description: 'What was accepted.', content: HandlerChange },
          problems: [404],
        },
        async ({ params }) => {
          const name = params['name'] ?? ''
          await requireHandler(store, actions, name)
          if (change === 'pause') await actions.pauseHandler(name)
          else await actions.resumeHandler(name)
          return { handler: name, paused: change === 'pause' }
        },
      ),
    ),
    route(
      {
        method: 'POST',
        path: '/api/handlers/{name}/test',
        summary: 'Sends a test fact to a handler, marked as a test, and waits for its answer.',
        body: asked({
          type: Type.String({
            default: 'turn.settled',
            pattern: '^[A-Za-z0-9_.-]{1,64}$',
            description: 'The type of the fact.',
          }),
          data: Type.Record(Type.String(), Type.Unknown(), {
            default: {},
            description: 'Replaces fields of the example `data` of the type.',
          }),
        }),
        success: { status: 200, description: 'The outcome at the handler.', content: HandlerTested },
        problems: [404],
      },
      async ({ params, body: { type, data } }) => {
        const handler = params['name'] ?? ''
        await requireHandler(store, actions, handler)
        const test = await actions.testHandler(handler, { type, data: isObject(data) ? data : {} })
        return { handler, ...test }
      },
    ),
    route(
      {
        method: 'POST',
        path: '/api/replay',
        summary: 'Sends past facts to one handler again.',
        body: asked({
          handler: Type.String(),
          from: Type.Union([Type.Integer({ minimum: 0 }), Type.String()], {
            description: 'A seq of the stream (digits), or a point in time (ISO 8601).',
            examples: ['1042', '2026-11-21T05:00:00Z'],
          }),
        }),
        success: { status: 202, description: 'The number of facts that are due again.', content: Replayed },
        problems: [404],
      },
      async ({ body: { handler, from } }) => {
        await requireHandler(store, actions, handler)
        const { count } = await actions.replay({
          handler,
          from: /^\d{1,40}$/.test(String(from)) ? { seq: String(from) } : { at: timeOf('from', from) },
        })
        return { handler, count }
      },
    ),
  ]
}

/** The handlers with their backlogs, the configured ones first. */
export async function backlogs(
  store: Pick<StoreReader, 'counts'>,
  actions: Pick<AdminActions, 'handlers'>,
): Promise<HandlerBacklog[]> {
  const [reports, { deliveries }] = await Promise.all([actions.handlers(), store.counts()])
  const counts = new Map(Object.entries(deliveries))
  const configured = new Set(reports.map(({ name }) => name))
  // Someone renamed a handler: the deliveries of the old name are sent only when a handler has it again.
  const removed = [...counts]
    .filter(([name, { pending, dead }]) => !configured.has(name) && pending + dead > 0)
    .map(([name]) => ({ name, state: 'removed' as const, since: null, lastError: null }))
  return [...reports, ...removed].map((report) => {
    const { pending = 0, oldestPending = null, dead = 0 } = counts.get(report.name) ?? {}
    return { ...report, pending, oldestPendingAt: oldestPending, dead }
  })
}

/** @throws {Problem} naming the handler that was most likely meant. */
export async function requireHandler(
  store: Pick<StoreReader, 'counts'>,
  actions: Pick<AdminActions, 'handlerNames'>,
  name: string,
): Promise<void> {
  const names = actions.handlerNames()
  if (names.includes(name)) return
  const { deliveries } = await store.counts()
  const { pending = 0, dead = 0 } = deliveries[name] ?? {}
  const removed = pending + dead > 0
  throw new Problem(
    'not_found',
    removed
      ? `handler ${name} is not configured. First give a handler this name again`
      : `no handler has that name.${guess(name, names)}`,
  )
}
