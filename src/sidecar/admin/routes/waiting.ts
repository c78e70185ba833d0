import { Type, type Static } from 'typebox'
import { answers } from '../../../core/tool.ts'
import type { OpenAction, OpenTurn, StoreReader } from '../../../core/store-reader.ts'
import type { AdminActions } from '../actions.ts'
import { adviceOn } from '../advice.ts'
import { asGiven, component, nullable, time } from '../component.ts'
import { entryOf, type Held } from '../entry.ts'
import { listRoute } from '../page.ts'
import type { Route } from '../route.ts'

const SERVICE_TIME = "Milliseconds since the epoch on the service's clock."

const Waiting = Type.Object({
  type: Type.String({ description: 'function_call, approval, question, or another word of the service.' }),
  call_id: Type.String(),
  name: nullable(Type.String(), 'The function of a function_call.'),
  created_at: nullable(time(), SERVICE_TIME),
  expires_at: nullable(time(), SERVICE_TIME),
})

const OpenTurnEntry = component(
  'OpenTurn',
  Type.Object({
    id: Type.String(),
    session_id: Type.String(),
    session_title: nullable(Type.String()),
    session_status: Type.String(),
    status: Type.String({ description: 'The status of the turn, as last read.' }),
    artifacts: nullable(Type.String(), 'The state of its artifacts; null while it runs.'),
    created_at: nullable(time(), SERVICE_TIME),
    waits_for: Type.Array(Waiting, { description: 'Open actions of this turn.' }),
  }),
)

const OpenActionEntry = component(
  'OpenAction',
  Type.Object({
    call_id: Type.String(),
    type: Type.String(),
    name: nullable(Type.String(), 'The function of a function_call.'),
    session_id: Type.String(),
    session_title: nullable(Type.String()),
    turn_id: nullable(Type.String()),
    created_at: nullable(time(), SERVICE_TIME),
    expires_at: nullable(time(), SERVICE_TIME),
    opened_at: time('When the sidecar first read the action, milliseconds since the epoch.'),
    advice: nullable(
      Type.String(),
      'The action to take for a function call that no configured tool answers.',
    ),
    action: asGiven('The entry of required_actions as the service sent it.'),
  }),
)

export function waitingRoutes(store: StoreReader, actions: Pick<AdminActions, 'tools'>): Route[] {
  return [
    listRoute(
      {
        path: '/api/turns',
        summary: 'Turns that are not settled, the oldest first, with the reasons for their wait.',
        of: 'turns',
        entry: OpenTurnEntry,
        query: {},
        show: turnOf,
      },
      (query) => store.openTurns(query),
    ),
    listRoute(
      {
        path: '/api/actions',
        summary: 'Required actions that are open, the oldest first.',
        of: 'actions',
        entry: OpenActionEntry,
        query: {},
        show: (entry: OpenAction) => actionOf(entry, new Set(actions.tools().map(({ name }) => name))),
      },
      (query) => store.openActions(query),
    ),
  ]
}

function turnOf({ turn, session }: OpenTurn): Held<Static<typeof OpenTurnEntry.schema>> {
  return {
    ...turn,
    sessionId: session.id,
    sessionTitle: session.title,
    sessionStatus: session.status,
    waitsFor: session.actions
      .filter(({ turnId }) => turnId === turn.id)
      .map((action) => entryOf({ schema: Waiting }, action)),
  }
}

function actionOf(
  { action, openedAt, session }: OpenAction,
  tools: ReadonlySet<string>,
): Held<Static<typeof OpenActionEntry.schema>> {
  const { type, name, raw } = action
  const strange = type === 'function_call' && name !== null && !answers(tools, name)
  return {
    ...action,
    sessionId: session.id,
    sessionTitle: session.title,
    openedAt,
    advice: strange ? adviceOn(name) : null,
    action: raw,
  }
}
