import { Type, type Static } from 'typebox'
import type { SessionRecord, StoreReader } from '../../../core/store-reader.ts'
import { asGiven, component, nullable, refTo, time } from '../component.ts'
import { entryOf, type Held } from '../entry.ts'
import { listRoute } from '../page.ts'
import { Problem } from '../problem.ts'
import { route, type Route } from '../route.ts'
import { Call, callOf } from './calls.ts'

const SERVICE_TIME = "Milliseconds since the epoch on the service's clock."

const FIELDS = {
  id: Type.String(),
  status: Type.String({ description: 'As last read.' }),
  title: nullable(Type.String()),
  metadata: Type.Record(Type.String(), Type.String()),
  created_at: nullable(time(), SERVICE_TIME),
  updated_at: time(SERVICE_TIME),
  required_actions: Type.Array(asGiven('An entry of required_actions as the service sent it.')),
  at_rest: Type.Boolean({ description: 'Whether nothing is under way or pending.' }),
  first_seen_at: time(),
  read_at: time('When the sidecar last read it, milliseconds since the epoch.'),
  deleted_at: nullable(time(), 'When the sidecar found it deleted.'),
}

const Session = component('Session', Type.Object(FIELDS))

const SessionDetail = component(
  'SessionDetail',
  Type.Object({
    ...FIELDS,
    turns: Type.Array(asGiven('A turn as the service sent it.'), {
      description: 'The newest first, at most 200.',
    }),
    calls: Type.Array(refTo(Call), { description: 'The newest first, at most 200.' }),
    resource: asGiven('The session as the service sent it.'),
  }),
  [Call],
)

export function sessionRoutes(store: StoreReader): Route[] {
  return [
    listRoute(
      {
        path: '/api/sessions',
        summary: 'Known sessions, the newest first.',
        of: 'sessions',
        entry: Session,
        query: {
          status: Type.Optional(
            Type.String({
              description: 'Only sessions with this status that are not deleted; `deleted`: those that are.',
            }),
          ),
          text: Type.Optional(
            Type.String({
              minLength: 1,
              maxLength: 256,
              description:
                'The session with this id, or those of the newest ten thousand whose title contains this text.',
            }),
          ),
        },
        show: sessionOf,
      },
      (query) => store.sessions(query),
    ),
    route(
      {
        method: 'GET',
        path: '/api/sessions/{id}',
        summary: 'One session with its turns, open actions and calls.',
        success: { status: 200, description: 'The session.', content: SessionDetail },
        problems: [404],
      },
      async ({ params }) => {
        const record = await store.session(params['id'] ?? '')
        if (record === null) throw new Problem('not_found', 'there is no session with that id')
        return entryOf(SessionDetail, {
          ...sessionOf(record),
          requiredActions: record.actions.map(({ raw }) => raw),
          turns: record.turns.map(({ raw }) => raw),
          calls: record.calls.map((call) => entryOf(Call, callOf(call))),
          resource: record.session.raw,
        })
      },
    ),
  ]
}

function sessionOf({ session, ...read }: SessionRecord): Held<Static<typeof Session.schema>> {
  return { ...session, ...read, requiredActions: session.actions.map(({ raw }) => raw) }
}
