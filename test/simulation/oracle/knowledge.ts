import { inScope } from '../../../src/core/scope.ts'
import { scopeOf } from '../scope.ts'
import type { ModelSession } from '../service/state.ts'
import type { Simulation } from '../simulation.ts'
import type { Fault } from './rest.ts'

interface SessionRow {
  id: string
  status: string
  updated_at: number
  deleted_at: number | null
}

interface TurnRow {
  id: string
  raw: string | null
  settled: number
}

/** I15: what we know equals what the service says. */
export function knowledgeFaults(simulation: Simulation): Fault | null {
  const { state, db, scenario } = simulation
  const broken = (message: string): Fault => ({ invariant: 'I15', message })
  const rows = new Map(
    db
      .prepare<[], SessionRow>('SELECT id, status, updated_at, deleted_at FROM sessions')
      .all()
      .map((row) => [row.id, row]),
  )
  const turns = new Map(
    db
      .prepare<[], TurnRow>('SELECT id, raw, settled FROM turns')
      .all()
      .map((row) => [row.id, row]),
  )
  const actions = new Set(
    db.prepare<[], string>('SELECT call_id FROM actions WHERE resolved_at IS NULL').pluck().all(),
  )
  const openOf = db
    .prepare<[string], string>('SELECT call_id FROM actions WHERE resolved_at IS NULL AND session_id = ?')
    .pluck()
  const open = (sessionId: string): string[] => openOf.all(sessionId)
  for (const session of state.sessions.values()) {
    // Only the list shows a PATCH.
    if (session.fate === 'moved' && !scenario.channels.poll) {
      for (const { callId } of session.actions) actions.delete(callId)
      continue
    }
    if (!belongs(simulation, session)) {
      if (rows.get(session.id)?.deleted_at === null)
        return broken(`${session.id} is not ours and we follow it`)
      continue
    }
    const row = rows.get(session.id)
    if (session.deleted) {
      if (isNoticed(simulation, session) && row !== undefined && row.deleted_at === null)
        return broken(`${session.id} is gone and we do not know it`)
      for (const action of row?.deleted_at === null ? open(row.id) : []) actions.delete(action)
      continue
    }
    if (row === undefined) return broken(`${session.id} is not known`)
    if (row.deleted_at !== null) return broken(`${session.id} lives and we believe it gone`)
    if (row.status !== session.status)
      return broken(`${session.id} is ${session.status} and we believe ${row.status}`)
    for (const { callId } of session.actions)
      if (!actions.delete(callId)) return broken(`${session.id} waits for ${callId} and we do not know it`)
    if (row.updated_at < Math.floor(session.createdAt))
      return broken(`${session.id} was updated before it was made`)
  }
  const [stale] = actions
  if (stale !== undefined) return broken(`we believe that ${stale} is required`)
  for (const session of state.alive()) {
    if (session.fate !== 'ours') continue
    for (const turn of session.turns) {
      const row = turns.get(turn.id)
      // What rested long before our first look is taken as it is: a session without its turns, a turn behind others.
      if (row === undefined) continue
      const known =
        row.raw === null ? null : (JSON.parse(row.raw) as { status: string; artifacts: string | null })
      if (known?.status !== turn.status || known.artifacts !== turn.artifacts)
        return broken(
          `${turn.id} is ${turn.status}/${turn.artifacts} and we believe ${known?.status}/${known?.artifacts}`,
        )
    }
  }
  return subscriptionFault(simulation)
}

/** By the scope of this life, as the session is now. */
function belongs({ scenario, lives }: Simulation, { metadata, createdBy }: ModelSession): boolean {
  return inScope({ metadata, createdByToken: createdBy }, scopeOf(scenario.scope, lives))
}

/** One subscription, whose secret we have: otherwise the next start could not verify its deliveries. */
function subscriptionFault({ webhooks, db, scenario }: Simulation): Fault | null {
  if (!scenario.channels.webhook) return null
  const active = webhooks.subscriptions.filter((subscription) => subscription.active)
  const [ours] = active
  const secret = db
    .prepare<[string], string>('SELECT secret FROM subscriptions WHERE id = ? AND retired_at IS NULL')
    .pluck()
    .get(ours?.id ?? '')
  if (active.length === 1 && secret === ours?.secret) return null
  return {
    invariant: 'I15',
    message: `there are ${active.length} subscriptions, and we know the secret of ${secret === undefined ? 'none' : 'one'}`,
  }
}

/**
 * No frame and no webhook reports a deleted session. It is noticed by polling, when we ask for it,
 * at the next start, and with the next connection of the stream.
 */
function isNoticed({ scenario, life, events }: Simulation, { deletedAt, missed }: ModelSession): boolean {
  const at = deletedAt ?? Infinity
  const lookedAnew = (life?.startedAt ?? 0) > at || (scenario.channels.stream && events.freshAt > at)
  return scenario.channels.poll || missed || lookedAnew
}
