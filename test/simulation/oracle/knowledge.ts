import { inScope } from '../../../src/core/scope.ts'
import { scopeOf } from '../scope.ts'
import type { ModelSession } from '../service/state.ts'
import type { Simulation } from '../simulation.ts'
import { firstFault, type Fault } from '../../checker/history.ts'
import { knowledge, type Following } from '../../checker/knowledge.ts'

interface SessionRow {
  id: string
  status: string
  updated_at: number
  deleted_at: number | null
}

interface TurnRow {
  id: string
  raw: string | null
}

interface OpenAction {
  call_id: string
  session_id: string
}

/** I15: what we know equals what the service says. */
export function knowledgeFaults(simulation: Simulation): Fault | null {
  const { state, db } = simulation
  const sessions = db.prepare<[], SessionRow>('SELECT id, status, updated_at, deleted_at FROM sessions').all()
  const rows = db.prepare<[], TurnRow>('SELECT id, raw FROM turns').all()
  const openActions = db
    .prepare<[], OpenAction>('SELECT call_id, session_id FROM actions WHERE resolved_at IS NULL')
    .all()
  const turns = new Map(rows.map(({ id, raw }) => [id, raw]))
  const service = {
    sessions: [...state.sessions.values()].map((session) => ({
      id: session.id,
      status: session.status,
      created_at: session.createdAt,
      deleted_at: session.deletedAt,
      required: session.actions.map(({ callId }) => callId),
      following: followingOf(simulation, session),
      noticed: isNoticed(simulation, session),
    })),
    // What was settled long before our first read is taken as it is: a session without its turns, a turn behind others.
    turns: state
      .alive()
      .filter(({ fate }) => fate === 'ours')
      .flatMap((session) => session.turns.map((turn) => ({ ...turn, session_id: session.id })))
      .filter(({ id }) => turns.has(id))
      .map((turn) => ({ ...turn, completed_at: turn.completedAt })),
  }
  const known = { sessions: new Map(sessions.map((row) => [row.id, row])), turns, openActions }
  return firstFault(
    () => knowledge(service, known),
    () => subscriptionFaults(simulation),
  )
}

/** Only the list shows a PATCH. */
function followingOf(simulation: Simulation, session: ModelSession): Following {
  if (session.fate === 'moved' && !simulation.scenario.channels.poll) return 'either'
  return belongs(simulation, session) ? 'follows' : 'ignores'
}

/** By the scope of this life, as the session is now. */
function belongs({ scenario, lives }: Simulation, { metadata, createdBy }: ModelSession): boolean {
  return inScope({ metadata, createdByToken: createdBy }, scopeOf(scenario.scope, lives))
}

/** One subscription, whose secret we have: otherwise the next start could not verify its deliveries. */
function subscriptionFaults({ webhooks, db, scenario }: Simulation): Fault[] {
  if (!scenario.channels.webhook) return []
  const active = webhooks.subscriptions.filter((subscription) => subscription.active)
  const [ours] = active
  const secret = db
    .prepare<[string], string>('SELECT secret FROM subscriptions WHERE id = ? AND retired_at IS NULL')
    .pluck()
    .get(ours?.id ?? '')
  if (active.length === 1 && secret === ours?.secret) return []
  const message = `there are ${active.length} subscriptions, and we know the secret of ${secret === undefined ? 'none' : 'one'}`
  return [{ invariant: 'I15', message }]
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
