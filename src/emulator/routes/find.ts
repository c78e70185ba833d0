import { notFound } from '../refusal.ts'
import type { Session } from '../session.ts'
import type { Turn } from '../turn.ts'
import type { World } from '../world.ts'

/** @throws {Refusal} 404 */
export function findSession(world: World, id: string | undefined): Session {
  const session = world.sessions.find(id ?? '')
  if (session === undefined) throw notFound('session', id ?? '')
  return session
}

/**
 * The turn, in the session of the path, or in any session if the path names none. @throws {Refusal}
 * 404
 */
export function findTurn(
  world: World,
  sessionId: string | undefined,
  id: string | undefined,
): [Session, Turn] {
  const among = sessionId === undefined ? world.sessions.live() : [findSession(world, sessionId)]
  for (const session of among) {
    const turn = session.turns.find((candidate) => candidate.id === id)
    if (turn !== undefined) return [session, turn]
  }
  throw notFound('turn', id ?? '')
}
