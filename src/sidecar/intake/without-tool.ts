import type { StoredFact } from '../../core/fact.ts'
import { isObject, stringOf } from '../../std/json.ts'
import type { CallWithoutTool } from '../../core/observer.ts'

/** The function call that a fact reports and that no configured tool answers; null for any other fact. */
export function callWithoutTool(fact: StoredFact, tools: ReadonlySet<string>): CallWithoutTool | null {
  if (fact.type !== 'action.required') return null
  const body: unknown = JSON.parse(fact.body)
  const action = isObject(body) ? body.action : undefined
  if (!isObject(action) || action.type !== 'function_call') return null
  const name = stringOf(action.name)
  const callId = stringOf(action.call_id)
  if (name === null || callId === null || tools.has(name)) return null
  return { name, callId, sessionId: fact.sessionId }
}
