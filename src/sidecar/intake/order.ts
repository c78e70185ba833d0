import type { Action, Turn } from '../../core/resource.ts'

/** Something that is told of a turn. */
export type Step =
  | { kind: 'started' | 'ended' | 'settled'; turn: Turn }
  | { kind: 'resolved'; action: Action }

/** What is new of the turns of a session, each list by age. */
export interface News {
  started: readonly Turn[]
  ended: readonly Turn[]
  settled: readonly Turn[]
  resolved: readonly Action[]
}

/**
 * The order in which turns are told of: `first` their starts, and before each start what was over by then, as messages that
 * wait make one turn follow another; `last` what else is over.
 */
export function causalOrder(news: News): { first: Step[]; last: Step[] } {
  const resolved = new Set(news.resolved)
  const ended = new Set(news.ended)
  const settled = new Set(news.settled)
  const starting = new Set(news.started.map(({ id }) => id))
  const first: Step[] = []
  const endOf = (turn: Turn): void => {
    for (const action of resolved) {
      if (action.turnId === turn.id && resolved.delete(action)) first.push({ kind: 'resolved', action })
    }
    if (ended.delete(turn)) first.push({ kind: 'ended', turn })
    if (settled.delete(turn)) first.push({ kind: 'settled', turn })
  }
  for (const turn of news.started) {
    for (const over of new Set([...ended, ...settled])) {
      if (!starting.has(over.id) && isOverBefore(over, turn)) endOf(over)
    }
    first.push({ kind: 'started', turn })
    starting.delete(turn.id)
  }
  const last = [
    ...Array.from(resolved, (action): Step => ({ kind: 'resolved', action })),
    ...Array.from(ended, (turn): Step => ({ kind: 'ended', turn })),
    ...Array.from(settled, (turn): Step => ({ kind: 'settled', turn })),
  ]
  return { first, last }
}

function isOverBefore({ completedAt }: Turn, next: Turn): boolean {
  const began = next.startedAt ?? next.createdAt
  return completedAt !== null && began !== null && completedAt <= began
}
