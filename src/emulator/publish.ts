import type { Payload, PersistedEvent, PersistedType, TransientType } from './event.ts'
import type { Session } from './session.ts'
import type { World } from './world.ts'

/** Stores an event, adds it to the transcript if it belongs there, and sends it to every stream. */
export function publish(
  world: World,
  session: Session,
  turnId: string | null,
  type: PersistedType | (string & {}),
  payload: Payload = {},
): PersistedEvent {
  const event = world.log.append({
    at: world.clock.now(),
    type,
    sessionId: session.id,
    turnId,
    payload: spelled(world, payload),
  })
  if (world.details.item.typeOf(type) !== undefined) session.items.push(event)
  world.streams.deliver(event)
  return event
}

/** Sends an event that is never stored: no `id:` line, `seq: null`, not replayed. */
export function publishTransient(
  world: World,
  session: Session,
  turnId: string | null,
  type: TransientType,
  payload: Payload,
): void {
  if (type === 'agent.status' && !world.details.stream.transients.includes(type)) return
  world.streams.deliver({
    seq: null,
    at: world.clock.now(),
    type,
    sessionId: session.id,
    turnId,
    payload: spelled(world, payload),
  })
}

function spelled(world: World, payload: Payload): Record<string, unknown> {
  return { ...payload.stated, ...world.details.spell(payload.open ?? {}) }
}
