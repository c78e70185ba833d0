import { Type } from 'typebox'
import { answers } from '../../../core/tool.ts'
import type { StoreReader } from '../../../core/store-reader.ts'
import type { AdminActions } from '../actions.ts'
import { component, refTo } from '../component.ts'
import { route, type Route } from '../route.ts'
import { backlogs } from './handlers.ts'
import { NeedEntry, needsOf, type WaitingAction } from './need.ts'
import type { StatusReport } from './status.ts'

/** The number of open actions that are read, the oldest first. */
const SOME = 100

const Attention = component(
  'Attention',
  Type.Object({ object: Type.Literal('list'), data: Type.Array(refTo(NeedEntry)) }),
  [NeedEntry],
)

export function attentionRoute(
  store: StoreReader,
  actions: AdminActions,
  status: () => StatusReport | Promise<StatusReport>,
  now: () => number,
): Route {
  return route(
    {
      method: 'GET',
      path: '/api/attention',
      summary: 'The problems that need attention, failures first, each with the action to take.',
      success: { status: 200, description: 'All problems.', content: Attention },
    },
    async () => {
      const [report, handlers, open] = await Promise.all([
        status(),
        backlogs(store, actions),
        store.openActions({ limit: SOME }),
      ])
      const behind = handlers.filter(({ state, pending }) => state === 'up' && pending > 0)
      const stuck = await Promise.all(behind.map(({ name }) => store.stuck(name)))
      const tools = new Set(actions.tools().map(({ name }) => name))
      const waiting = open.rows.map(({ action, openedAt, session }): WaitingAction => ({
        type: action.type,
        name: action.name,
        sessionId: session.id,
        turnId: action.turnId,
        since: action.createdAt ?? openedAt,
        isForeign: action.name !== null && !answers(tools, action.name),
      }))
      const seen = {
        status: report,
        handlers,
        actions: waiting,
        more: open.more,
        stuck: stuck.flat(),
        now: now(),
      }
      return { object: 'list', data: needsOf(seen) }
    },
  )
}
