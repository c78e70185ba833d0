import { newArtifact } from './artifact.ts'
import { publish } from './publish.ts'
import type { Run } from './run.ts'
import { touch, type Session } from './session.ts'
import type { Turn } from './turn.ts'
import type { WorkspaceFile } from './workspace.ts'
import type { World } from './world.ts'

/**
 * Publishes what a turn wrote under `outputs/`, a moment after its end: `pending` becomes `ready`, `partial` or
 * `failed`. `turn.completed` follows, or goes out by itself when the collection takes too long.
 */
export function collectArtifacts(world: World, session: Session, run: Run, turn: Turn): void {
  // As the files are now: the next turn, or the end of the workspace, no longer changes them.
  const files = [...run.written]
    .map((path) => ({ path, file: session.workspace.files.get(path) }))
    .filter((entry): entry is { path: string; file: WorkspaceFile } => entry.file !== undefined)

  let told = false
  const tellCompleted = (): void => {
    if (told || turn.status !== 'completed') return
    told = true
    world.webhooks.tell('turn.completed', session.id, turn.id)
  }
  const regardless = world.clock.after(world.limits.artifactWaitMs, tellCompleted)
  world.clock.after(run.collectMs ?? world.limits.collectMs, () => {
    regardless.cancel()
    if (session.deletedAt !== null) return
    settle(world, session, turn, files)
    tellCompleted()
  })
}

function settle(
  world: World,
  session: Session,
  turn: Turn,
  files: readonly { path: string; file: WorkspaceFile }[],
): void {
  if (world.faults.use('fail_artifacts')) {
    turn.artifacts = 'failed'
    turn.skipped = files.map(({ path }) => ({ path, reason: 'the collection failed' }))
    return touch(session, world.clock.now())
  }
  let total = session.artifacts.reduce((sum, artifact) => sum + artifact.bytes.length, 0)
  for (const { path, file } of files) {
    const reason = whySkipped(world, file, total)
    if (reason !== undefined || file.bytes === null) {
      turn.skipped.push({ path, reason: reason ?? 'the file could not be read' })
      continue
    }
    total += file.size
    const createdAt = world.clock.now()
    const artifact = newArtifact({
      sessionId: session.id,
      turnId: turn.id,
      path,
      bytes: file.bytes,
      createdAt,
    })
    session.artifacts.push(artifact)
    publish(world, session, turn.id, 'artifact.created', {
      open: { artifact_id: artifact.id, path, size_bytes: file.size, content_type: artifact.contentType },
    })
  }
  turn.artifacts = turn.skipped.length === 0 ? 'ready' : 'partial'
  touch(session, world.clock.now())
}

function whySkipped(world: World, file: WorkspaceFile, total: number): string | undefined {
  const { artifactBytes, artifactsTotalBytes } = world.limits
  if (file.size > artifactBytes) return `larger than ${artifactBytes} bytes`
  if (total + file.size > artifactsTotalBytes)
    return `all artifacts together are larger than ${artifactsTotalBytes} bytes`
  return undefined
}
