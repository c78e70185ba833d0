import { newArtifact } from './artifact.ts'
import { publish } from './publish.ts'
import { touch, type Session } from './session.ts'
import type { Turn } from './turn.ts'
import type { OutputFile } from './workspace.ts'
import type { World } from './world.ts'

/**
 * Publishes the files under `outputs/` a moment after a turn's end: `pending` becomes `ready`, `partial` or `failed`.
 * `turn.completed` is sent after that, or earlier if the collection takes too long.
 */
export function collectArtifacts(world: World, session: Session, turn: Turn, collectMs: number | null): void {
  turn.artifacts = 'pending'
  // A copy of the current files: the next turn, or the end of the workspace, does not change it.
  turn.outputs = session.workspace.takeOutputs()
  resumeCollection(world, session, turn, collectMs)
}

/** Continues the collection of a turn that is `pending`. */
export function resumeCollection(world: World, session: Session, turn: Turn, collectMs: number | null): void {
  let sent = false
  const sendCompleted = (): void => {
    if (sent || turn.status !== 'completed') return
    sent = true
    world.webhooks.send('turn.completed', session.id, turn.id)
  }
  const regardless = world.clock.after(world.limits.artifactWaitMs, sendCompleted)
  world.clock.after(collectMs ?? world.limits.collectMs, () => {
    regardless.cancel()
    if (session.deletedAt !== null) return
    settle(world, session, turn)
    sendCompleted()
  })
}

function settle(world: World, session: Session, turn: Turn): void {
  const files = turn.outputs
  turn.outputs = []
  if (world.faults.use('fail_artifacts')) {
    turn.artifacts = 'failed'
    turn.skipped = files.map(({ path }) => ({ path, reason: 'the collection failed' }))
    return touch(session, world.clock.now())
  }
  for (const file of files) {
    const reason = whySkipped(world, session, file)
    if (reason !== undefined || file.bytes === null) {
      turn.skipped.push({ path: file.path, reason: reason ?? 'the file could not be read' })
      continue
    }
    const { path, bytes } = file
    const createdAt = world.clock.now()
    const artifact = newArtifact({ sessionId: session.id, turnId: turn.id, path, bytes, createdAt })
    session.artifacts.push(artifact)
    publish(world, session, turn.id, 'artifact.created', {
      open: {
        artifact_id: artifact.id,
        path,
        size_bytes: bytes.length,
        content_type: artifact.contentType,
      },
    })
  }
  turn.artifacts = turn.skipped.length === 0 ? 'ready' : 'partial'
  touch(session, world.clock.now())
}

function whySkipped({ limits }: World, session: Session, file: OutputFile): string | undefined {
  const { artifactBytes, artifactsTotalBytes } = limits
  if (file.size > artifactBytes) return `larger than ${artifactBytes} bytes`
  const total = session.artifacts.reduce((sum, { bytes }) => sum + bytes.length, 0)
  if (total + file.size > artifactsTotalBytes)
    return `all artifacts together are larger than ${artifactsTotalBytes} bytes`
  return undefined
}
