import type { Subscriber } from '../core/bus.ts'
import type { StoredFact } from '../core/fact.ts'
import type { CallWithoutTool, Observer } from '../core/observer.ts'
import type { Service } from '../core/ports.ts'
import type { Shards } from '../core/shards.ts'
import { answers } from '../core/tool.ts'
import { isObject, numberOf, stringOf } from '../std/json.ts'
import type { Clock, Log } from '../std/ports.ts'
import { createThrottledLog } from '../std/throttled-log.ts'

/** Reports what was committed to the observers: metrics, `dev` and the library's user. */
export function reportCommits(options: {
  observer: Observer
  service: Pick<Service, 'clockOffset'>
  /** Names of the configured tools. */
  tools: ReadonlySet<string>
}): Subscriber {
  const { observer, service, tools } = options

  return {
    factsAdded(facts) {
      for (const fact of facts) {
        if (fact.family === 'transcript') observer.fact(fact, null)
        else {
          const body: unknown = JSON.parse(fact.body)
          observer.fact(fact, lagOf(fact, body, service.clockOffset()))
          const call = callWithoutTool(fact, body, tools)
          if (call !== null) observer.callWithoutTool(call)
        }
      }
    },
    sighted(sightings) {
      for (const { channel, type, at, factAt } of sightings)
        observer.sighting({ channel, type, lag: Math.max(0, at - factAt) / 1000 })
    },
    framesUnattributed: (count) => observer.framesUnattributed(count),
    transient: (event) => observer.transient(event),
  }
}

/** Seconds from the event, by the time in the resource, until its fact was stored; null if the resource has no time. */
function lagOf(fact: StoredFact, body: unknown, offset: number): number | null {
  if (!isObject(body)) return null
  const happened = happenedAt(fact.type, body)
  return happened === null ? null : Math.max(0, fact.at + offset - happened) / 1000
}

function happenedAt(type: string, body: Record<string, unknown>): number | null {
  const { turn, action, session } = body
  if (type === 'turn.started' && isObject(turn)) return numberOf(turn.started_at)
  if (type.startsWith('turn.') && type !== 'turn.settled' && isObject(turn))
    return numberOf(turn.completed_at)
  if (type === 'action.required' && isObject(action)) return numberOf(action.created_at)
  if (type === 'session.created' && isObject(session)) return numberOf(session.created_at)
  if (type.startsWith('session.') && type !== 'session.deleted' && isObject(session))
    return numberOf(session.updated_at)
  return null
}

/** Reports what this process owns. @returns a function that reports it now. */
export function reportShards(shards: Shards, observer: Observer): () => void {
  const owned = new Set<number>()
  const report = (): void => observer.shards(owned.size, shards.leads)
  shards.subscribe({
    led: report,
    gained(more) {
      for (const shard of more) owned.add(shard)
      report()
    },
    lost(fewer) {
      for (const shard of fewer) owned.delete(shard)
      report()
    },
  })
  return report
}

/** The function call that a fact reports and that no configured tool answers; null for any other fact. */
function callWithoutTool(
  fact: StoredFact,
  body: unknown,
  tools: ReadonlySet<string>,
): CallWithoutTool | null {
  if (fact.type !== 'action.required') return null
  const action = isObject(body) ? body.action : undefined
  if (!isObject(action) || action.type !== 'function_call') return null
  const name = stringOf(action.name)
  const callId = stringOf(action.call_id)
  if (name === null || callId === null || answers(tools, name)) return null
  return { name, callId, sessionId: fact.sessionId }
}

/** Characters of a name in a log line: the service allows 64, and the agent's side chooses them. */
const NAME = 64

/**
 * Logs function calls that no configured tool answers, for example of `lookup_ordr`, at most once in ten seconds. A sidecar
 * without any tool leaves all calls to another process on purpose: then it is information, else a warning.
 */
export function logCallsWithoutTool(
  clock: Pick<Clock, 'steady'>,
  log: Log,
  hasTools: boolean,
): Pick<Observer, 'callWithoutTool'> {
  const level = hasTools ? 'warn' : 'info'
  const report = createThrottledLog<CallWithoutTool>(clock, (times, { name, callId, sessionId }) =>
    log[level](
      { function: name.slice(0, NAME), callId, sessionId, times },
      'tools: no configured tool answers a function call; add it under tools, unless another process answers it',
    ),
  )
  return { callWithoutTool: (call) => report(call) }
}
