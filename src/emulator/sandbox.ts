import { unreachableServers } from './mcp.ts'
import { publish } from './publish.ts'
import { clone } from './repository.ts'
import { touch, type SeedFile, type Session } from './session.ts'
import { TurnEnd } from './turn.ts'
import { Workspace } from './workspace.ts'
import type { World } from './world.ts'

/** A workspace for the session of `owner`; its pauses and its end change that session. */
export function newWorkspace(world: World, owner: () => Session): Workspace {
  return new Workspace(world.clock, world.limits, {
    paused: () => {
      touch(owner(), world.clock.now())
      publish(world, owner(), owner().run?.turn?.id ?? null, 'sandbox.paused')
    },
    reclaimed: () => {
      const session = owner()
      session.preview = { url: null, port: null, publishedUrl: null }
      touch(session, world.clock.now())
      const error = { code: 'workspace_reclaimed', message: 'the workspace reached the end of its lifetime' }
      session.run?.controller.abort(new TurnEnd('failed', error))
    },
  })
}

/** Starts the workspace for the next work: its clone, its servers and then its seeded files. */
export function wakeWorkspace(world: World, session: Session, turnId: string | null = null): void {
  recover(world, session, turnId)
  const built = session.workspace.wake() === 'created'
  if (built) build(world, session)
  if (!session.serversStarted) startServers(world, session)
  // The files are written after the servers start: the program of a server must not be found among them.
  if (built) for (const file of session.files) seed(world, session, file)
}

/** Starts the workspace for one request; afterwards it may pause again. */
export function visitWorkspace(world: World, session: Session): void {
  wakeWorkspace(world, session)
  if (session.run === null || session.status === 'requires_action') session.workspace.idle()
}

/**
 * Resumes a paused workspace with its content. False when it was lost during the pause: then the
 * next one is built anew.
 */
export function recover(world: World, session: Session, turnId: string | null): boolean {
  const { workspace } = session
  if (workspace.state !== 'paused') return true
  touch(session, world.clock.now())
  if (world.faults.use('fail_recoveries')) {
    workspace.lose()
    const reason = 'the paused workspace could not be brought back'
    publish(world, session, turnId, 'workspace.recovery_failed', { open: { reason } })
    return false
  }
  workspace.wake()
  publish(world, session, turnId, 'sandbox.resumed')
  return true
}

function build(world: World, session: Session): void {
  touch(session, world.clock.now())
  session.builtInstructions = session.agent.instructions
  session.serversStarted = false
  publish(world, session, null, 'sandbox.created')
  clone(world, session)
}

/** Reports the optional servers that are unreachable. */
function startServers(world: World, session: Session): void {
  session.serversStarted = true
  for (const { name, reason } of unreachableServers(world, session, false)) {
    publish(world, session, null, 'mcp.unavailable', { stated: { server: name, reason } })
  }
}

/** A seeded file that cannot be written leaves an error item and the session open. */
function seed(world: World, session: Session, { path, bytes }: SeedFile): void {
  const { files } = session.workspace
  const parents = path.split('/').map((_, depth, parts) => parts.slice(0, depth).join('/'))
  const blocked = parents.some((parent) => files.has(parent)) || world.faults.use('fail_seeds')
  if (!blocked) return void files.set(path, { size: bytes.length, bytes })
  const message = `${path} could not be written: not a directory`
  publish(world, session, null, 'agent.error', { open: { code: 'file_not_written', message } })
}
