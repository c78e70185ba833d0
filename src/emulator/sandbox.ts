import { publish } from './publish.ts'
import { touch, type SeedFile, type Session } from './session.ts'
import { whyUnreachable, type McpTool } from './tool.ts'
import { TurnEnd } from './turn.ts'
import { Workspace } from './workspace.ts'
import type { World } from './world.ts'

/** A workspace for the session that `owner` answers, wired to what its pauses and its end mean for that session. */
export function newWorkspace(world: World, owner: () => Session): Workspace {
  return new Workspace(world.clock, world.limits, {
    paused: () => {
      touch(owner(), world.clock.now())
      publish(world, owner(), owner().run?.turn?.id ?? null, 'sandbox.paused')
    },
    reclaimed: () => {
      touch(owner(), world.clock.now())
      const error = { code: 'workspace_reclaimed', message: 'the workspace reached the end of its lifetime' }
      owner().run?.controller.abort(new TurnEnd('failed', error))
    },
  })
}

/** Brings the workspace up for the work to come, with its seeded files, and says which servers stay away. */
export function wakeWorkspace(world: World, session: Session): void {
  const what = session.workspace.wake()
  if (what === 'up') return
  touch(session, world.clock.now())
  if (what === 'resumed') return void publish(world, session, null, 'sandbox.resumed')
  publish(world, session, null, 'sandbox.created')
  for (const file of session.files) seed(world, session, file)
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

/** The sentence that names a required MCP server which cannot be reached. */
export function unreachableRequired(world: World, session: Session): string | undefined {
  const [first] = unreachableServers(world, session, true)
  return first === undefined
    ? undefined
    : `the required MCP server ${JSON.stringify(first.name)} cannot be reached: ${first.reason}`
}

function unreachableServers(
  world: World,
  session: Session,
  required: boolean,
): { name: string; reason: string }[] {
  const servers = (session.agent.tools ?? []).filter((tool): tool is McpTool => tool.type === 'mcp')
  return servers
    .filter((server) => (server.required ?? false) === required)
    .map((server) => ({ name: server.name, reason: whyUnreachable(server, world.faults.unreachableMcp) }))
    .filter((server): server is { name: string; reason: string } => server.reason !== undefined)
}
