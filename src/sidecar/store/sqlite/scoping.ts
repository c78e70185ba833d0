import type { Clock } from '../../../std/ports.ts'
import type { OwnerNote } from '../../../core/scope.ts'
import type { Batch, Committed } from '../../../core/store.ts'
import type { Checkpoints } from './checkpoints.ts'
import type { Hints } from './hints.ts'
import type { Facts } from './log.ts'
import { endedBy, type SessionOwners } from './session-owners.ts'
import type { Sessions } from './sessions.ts'

interface ScopingParts {
  owners: SessionOwners
  facts: Facts
  hints: Hints
  sessions: Sessions
  checkpoints: Checkpoints
  clock: Clock
}

/** Inside the transaction of a batch with a scope: notes who owns its sessions, and keeps the part that is ours. */
export function createScoping(parts: ScopingParts): (batch: Batch, into: Committed) => Batch {
  const { owners, facts, hints, sessions, checkpoints, clock } = parts

  const release = (sessionId: string, into: Committed): number => {
    const released = owners.release(sessionId)
    facts.release(released, into)
    for (const fact of released) {
      const ended = endedBy(fact)
      if (ended !== null) sessions.endTurn(ended.turnId, ended.sessionId, ended.at)
    }
    return released.length
  }

  /** The session is no longer ours: its hint and its held frames are dropped. Pending deliveries are still made. */
  const leave = (sessionId: string, at: number): number => {
    hints.drop(sessionId)
    sessions.leave(sessionId, at)
    // If the session becomes ours again, items of the time in between make no facts.
    checkpoints.drop(`items/${sessionId}`)
    return owners.drop(sessionId)
  }

  const note = (one: OwnerNote, into: Committed): number => {
    const { sessionId, owner, at } = one
    owners.note(one)
    if (owner === 'ours') return release(sessionId, into)
    if (owner !== 'foreign' && owner !== 'gone') return 0
    const dropped = leave(sessionId, at)
    if (owner === 'gone') into.unattributed = (into.unattributed ?? 0) + dropped
    return dropped
  }

  return (batch, into) => {
    let moved = 0
    for (const one of batch.owners ?? []) moved += note(one, into)
    const { held, ...sifted } = owners.sift({ ...batch, facts: facts.unpruned(batch.facts ?? []) })
    // The stream gives one hint a session, which may be done long ago: only a new reading releases the held frames.
    for (const sessionId of held) hints.ensure(sessionId, clock.now(), clock.steady())
    if (held.size > 0) into.hinted = true
    if (held.size + moved > 0) into.held = owners.held()
    const readings = batch.readings?.filter((reading) => {
      if (reading.session === null || !owners.isOthers(reading.sessionId)) return true
      into.stale.push(reading.sessionId)
      return false
    })
    const newCalls = batch.newCalls?.filter(({ sessionId }) => !owners.isOthers(sessionId))
    return { ...batch, ...sifted, readings: readings ?? [], newCalls: newCalls ?? [] }
  }
}
