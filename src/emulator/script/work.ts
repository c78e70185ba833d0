import { posix } from 'node:path'
import { publish, publishTransient } from '../publish.ts'
import { touch } from '../session.ts'
import { TurnEnd } from '../turn.ts'
import { OUTPUTS } from '../workspace.ts'
import { fillIn } from './fill.ts'
import { newCallId, publishResult, type Scene } from './scene.ts'
import type { Step } from './step.ts'

type WriteStep = Extract<Step, { do: 'write' | 'write_size' }>

/** Pretends to run a command; `echo` answers what it is given. */
export function shell(scene: Scene, command: string): void {
  const { world, session, run, turn } = scene
  const callId = newCallId()
  publish(world, session, turn.id, 'agent.tool_call', {
    stated: { toolName: 'shell', args: { command } },
    open: { call_id: callId },
  })
  publishTransient(world, session, turn.id, 'agent.progress', {
    open: { call_id: callId, text: `$ ${command}` },
  })
  run.last = command.startsWith('echo ') ? command.slice('echo '.length) : `(ran: ${command})`
  publishResult(scene, { name: 'shell', callId, output: run.last, failed: false })
}

/** Where a `write` step writes, relative to the workspace directory. @throws {TurnEnd} when it is outside. */
export function pathOf(step: WriteStep): string {
  const path = posix.normalize(step.path.replace(/^\/workspace\//, ''))
  if (!path.startsWith('..') && !path.startsWith('/')) return path
  throw new TurnEnd('failed', { code: 'agent_failed', message: `${step.path} is outside the workspace` })
}

export function write({ world, session, run, turn }: Scene, step: WriteStep, path: string): void {
  const bytes = bytesOf(step, run.last, world.limits.artifactBytes)
  const size = step.do === 'write_size' ? step.bytes : (bytes?.length ?? 0)
  session.workspace.files.set(path, { size, bytes })
  if (path.startsWith(OUTPUTS)) run.written.add(path)
  publish(world, session, turn.id, 'file.changed', { open: { path, size_bytes: size } })
}

/** Null for a file over the artifact ceiling: nobody may ever fetch it, so only its size is kept. */
function bytesOf(step: WriteStep, last: string, ceiling: number): Buffer | null {
  if (step.do === 'write') return Buffer.from(fillIn(step.content, last))
  return step.bytes > ceiling ? null : Buffer.alloc(step.bytes)
}

/** Shows what is served at `port`, to the organization only. */
export function preview({ world, session, turn }: Scene, port: number): void {
  session.preview = { ...session.preview, port, url: `http://${session.id}.preview.invalid:${port}` }
  touch(session, world.clock.now())
  publish(world, session, turn.id, 'preview.ready', { open: { port, url: session.preview.url } })
}
