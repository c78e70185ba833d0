import type { Session, SessionStatus } from './session.ts'
import { touch } from './session.ts'
import type { WebhookType } from './event.ts'
import type { World } from './world.ts'

const WEBHOOK: Readonly<Record<SessionStatus, WebhookType>> = {
  idle: 'session.idle',
  working: 'session.working',
  requires_action: 'session.action_required',
  failed: 'session.failed',
}

/**
 * Sets the status of a session and sends webhooks; if the status is the same, only `updated_at`
 * changes.
 */
export function setStatus(world: World, session: Session, status: SessionStatus): void {
  touch(session, world.clock.now())
  if (session.status === status) return
  session.status = status
  world.webhooks.send(WEBHOOK[status], session.id, session.run?.turn?.id ?? null)
}
