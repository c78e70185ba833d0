import { dropActions } from './requirement.ts'
import type { Session } from './session.ts'
import type { World } from './world.ts'

/** Deletes a session: its run, workspace and streams end, its slot is free, its events stay in the log. */
export function removeSession(world: World, session: Session): void {
  dropActions(world, session)
  world.sessions.remove(session, world.clock.now())
  session.run?.controller.abort(new Error('the session was deleted'))
  session.run = null
  session.queue.length = 0
  session.workspace.close()
  session.workspace.files.clear()
  // The ledger keeps the events without their bytes.
  session.items = []
  session.artifacts = session.artifacts.map((artifact) => ({ ...artifact, bytes: new Uint8Array() }))
  world.streams.endSession(session.id)
}
