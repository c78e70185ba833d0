import { randomBytes } from 'node:crypto'
import { posix } from 'node:path'
import { publish, publishTransient } from '../publish.ts'
import { touch } from '../session.ts'
import { TurnEnd } from '../turn.ts'
import { newCallId, publishCall, publishResult, type Scene } from './scene.ts'
import type { Step } from '../step.ts'

type Doing<Verb extends Step['do']> = Extract<Step, { do: Verb }>

/** Pretends to run a command; `echo` prints its arguments. */
export function shell(scene: Scene, { command, output, exitCode = 0 }: Doing<'shell'>): void {
  const { world, session, turn } = scene
  const callId = newCallId()
  publish(world, session, turn.id, 'agent.tool_call', {
    stated: { toolName: 'shell', args: { command } },
    open: { call_id: callId },
  })
  publishTransient(world, session, turn.id, 'agent.progress', {
    open: { call_id: callId, text: `$ ${command}` },
  })
  const echoed = command.startsWith('echo ') ? command.slice('echo '.length) : `(ran: ${command})`
  publishResult(scene, { name: 'shell', callId, output: output ?? echoed, failed: exitCode !== 0 })
}

/** A path of a step relative to the workspace directory. @throws {TurnEnd} when it is outside. */
export function insidePath(given: string): string {
  const path = posix.normalize(given.replace(/^\/workspace\//, ''))
  if (!path.startsWith('..') && !path.startsWith('/')) return path
  throw new TurnEnd('failed', { code: 'agent_failed', message: `${given} is outside the workspace` })
}

export function read(scene: Scene, step: Doing<'read'>): void {
  const path = insidePath(step.path)
  const bytes = scene.session.workspace.files.get(path)?.bytes
  const found = bytes === undefined || bytes === null ? undefined : Buffer.from(bytes).toString('utf8')
  publishCall(scene, {
    name: 'read_file',
    args: { path },
    output: found ?? `${path}: no such file`,
    failed: found === undefined,
  })
}

export function write({ world, session, turn }: Scene, step: Doing<'write' | 'write_size'>): void {
  const path = insidePath(step.path)
  const bytes = bytesOf(step, world.limits.artifactBytes)
  const size = step.do === 'write_size' ? step.bytes : (bytes?.length ?? 0)
  session.workspace.write(path, { size, bytes })
  publish(world, session, turn.id, 'file.changed', { open: { path, size_bytes: size } })
}

/**
 * Null for a file over the artifact limit: it can never be downloaded, so only its size is kept.
 */
function bytesOf(step: Doing<'write' | 'write_size'>, ceiling: number): Buffer | null {
  if (step.do === 'write') return Buffer.from(step.content)
  return step.bytes > ceiling ? null : Buffer.alloc(step.bytes)
}

/** Starts a service in the sandbox. */
export function serve(scene: Scene, { command, port }: Doing<'serve'>): void {
  publishCall(scene, {
    name: 'start_service',
    args: { command, port },
    output: `listening on port ${port}`,
  })
}

/** Shows the service at `port`, to the organization only. */
export function preview({ world, session, turn }: Scene, port: number): void {
  session.preview = { ...session.preview, port, url: `http://${session.id}.preview.invalid:${port}` }
  touch(session, world.clock.now())
  publish(world, session, turn.id, 'preview.ready', { open: { port, url: session.preview.url } })
}

/** Commits the workspace on the branch of the clone. */
export function commit(scene: Scene, message: string): void {
  const branch = scene.session.repo?.branch ?? 'main'
  const output = `[${branch} ${randomBytes(4).toString('hex').slice(0, 7)}] ${message}`
  publishCall(scene, { name: 'commit', args: { message }, output })
}
