import { setImmediate as nextLoop } from 'node:timers/promises'
import { posix } from 'node:path'
import type { Resolution } from '../action.ts'
import { decisionOn } from '../approval.ts'
import type { Attempt } from '../policy.ts'
import { publish, publishTransient } from '../publish.ts'
import { requireActions, type Raised } from '../requirement.ts'
import type { Run } from '../run.ts'
import { touch, type Session } from '../session.ts'
import { TurnEnd, type Turn } from '../turn.ts'
import { OUTPUTS } from '../workspace.ts'
import type { World } from '../world.ts'
import { fillIn } from './fill.ts'
import type { FunctionCall, Step } from './step.ts'

/** Where a step is performed. */
export interface Scene {
  world: World
  session: Session
  run: Run
  turn: Turn
}

/** Characters of one streamed piece of text. */
const DELTA_CHARACTERS = 24
/** At most this many pieces, so that a long text does not become a thousand frames. */
const MOST_DELTAS = 8
/** Messages of a burst between two looks at the readers. */
const BURST_CHUNK = 64
/** How long after a lost answer a turn gives up, where it does. */
const LOST_ANSWER_MS = 50

/** Performs one step; throws `TurnEnd` when it ends the turn, rejects when the turn is ended from outside. */
export async function perform(scene: Scene, step: Step): Promise<void> {
  const { world, session, run, turn } = scene
  switch (step.do) {
    case 'say':
      return say(scene, fillIn(step.text, run.last))
    case 'think':
      return publishTransient(world, session, turn.id, 'agent.thinking', { stated: { delta: step.text } })
    case 'call':
      return call(scene, step.calls)
    case 'shell':
      return attempt(scene, { tool: 'shell', command: step.command }, () => shell(scene, step.command))
    case 'write':
    case 'write_size':
      return write(scene, step)
    case 'approve':
      return approve(scene, step.step, step.line)
    case 'ask':
      return ask(scene, step.question)
    case 'preview':
      return attempt(scene, { tool: 'preview' }, () => preview(scene, step.port))
    case 'wait':
      return wait(scene, step.ms)
    case 'hang':
      return wait(scene, null)
    case 'fail':
      throw new TurnEnd('failed', { code: 'agent_failed', message: step.reason })
    case 'cannot_start':
      throw new TurnEnd('failed', { code: 'agent_failed', message: `cannot start: ${step.reason}` })
    case 'burst':
      return burst(scene, step.count, step.bytes)
    case 'collect':
      run.collectMs = step.ms
      return
  }
}

function say({ world, session, turn }: Scene, text: string): void {
  const size = Math.max(DELTA_CHARACTERS, Math.ceil(text.length / MOST_DELTAS))
  for (let at = 0; at < text.length; at += size) {
    publishTransient(world, session, turn.id, 'agent.text', { stated: { delta: text.slice(at, at + size) } })
  }
  publish(world, session, turn.id, 'agent.message', { stated: { text } })
}

async function burst(scene: Scene, count: number, bytes: number): Promise<void> {
  const { world, session, run, turn } = scene
  const text = 'x'.repeat(bytes)
  for (let sent = 0; sent < count; sent++) {
    publish(world, session, turn.id, 'agent.message', { stated: { text } })
    if (sent % BURST_CHUNK !== BURST_CHUNK - 1) continue
    await world.streams.room(() => nextLoop())
    run.controller.signal.throwIfAborted()
  }
}

async function call(scene: Scene, calls: readonly FunctionCall[]): Promise<void> {
  const { world, session, run, turn } = scene
  const needs = calls.map(({ name, arguments: given }) => ({
    type: 'function_call' as const,
    name,
    arguments: fillIn(given, run.last),
    deadlineMs: deadlineOf(session, name),
  }))
  const raised = requireActions(world, session, turn, needs)
  for (const { action } of raised) {
    const stated = { toolName: action.name, args: action.arguments }
    publish(world, session, turn.id, 'agent.tool_call', { stated, open: { call_id: action.callId } })
    publish(world, session, turn.id, 'tool.required', {
      stated: { name: action.name, arguments: action.arguments },
      open: { call_id: action.callId, expires_at: action.expiresAt },
    })
  }
  const outputs = await Promise.all(raised.map(async (one) => result(scene, one, await settled(scene, one))))
  run.last = outputs.join('\n')
}

/** The function's declared deadline. A function that the session did not declare is called all the same, with none. */
function deadlineOf(session: Session, name: string): number | null {
  const tool = session.agent.tools?.find(
    (candidate) => candidate.type === 'function' && candidate.name === name,
  )
  return tool?.type === 'function' && tool.timeout_seconds !== undefined ? tool.timeout_seconds * 1000 : null
}

/** What the agent reads as the outcome of a call, published as its result. */
async function result(scene: Scene, { action }: Raised, resolution: Resolution): Promise<string> {
  const { world, session, turn } = scene
  if (resolution.kind === 'lost') return lost(scene)
  const failed = resolution.kind !== 'output'
  const text =
    resolution.kind === 'output' || resolution.kind === 'error'
      ? resolution.text
      : 'The call was not answered in time.'
  toolResult({ world, session, turn }, action.name, action.callId, text, failed)
  return text
}

/** The turn has lost an answer: it fails by itself, or stays until the end of the workspace, as the profile says. */
async function lost({ world, run }: Scene): Promise<never> {
  const { signal } = run.controller
  if (world.details.lostAnswer === 'hangs') await forever(signal)
  await world.clock.wait(LOST_ANSWER_MS, signal)
  throw new TurnEnd('failed', {
    code: 'answer_not_delivered',
    message: 'the answer to a call did not arrive',
  })
}

function settled({ run }: Scene, raised: Raised): Promise<Resolution> {
  return Promise.race([raised.resolved, aborted(run.controller.signal)])
}

async function approve(scene: Scene, step: Step, line: string): Promise<void> {
  if (await allowed(scene, toolOf(step), line)) await perform(scene, step)
}

/** Asks a person; true once they approved. */
async function allowed(scene: Scene, tool: string, line: string): Promise<boolean> {
  const { world, session, turn } = scene
  const need = { type: 'approval' as const, name: tool, arguments: { line }, deadlineMs: null }
  const [raised] = requireActions(world, session, turn, [need])
  if (raised === undefined) return false
  const { action } = raised
  publish(world, session, turn.id, 'approval.requested', {
    stated: { name: tool },
    open: { call_id: action.callId, line },
  })
  const resolution = await settled(scene, raised)
  const approved = resolution.kind === 'approved' && resolution.approved
  const sentence = approved ? 'A person approved this.' : 'A person did not approve this.'
  publish(world, session, turn.id, 'approval.resolved', {
    stated: {
      approved,
      toolCallId: action.callId,
      name: tool,
      ...world.details.personalApprovalCode,
      message: sentence,
    },
  })
  return approved
}

async function ask(scene: Scene, question: string): Promise<void> {
  const { world, session, run, turn } = scene
  const need = { type: 'question' as const, name: '', arguments: question, deadlineMs: null }
  const [raised] = requireActions(world, session, turn, [need])
  if (raised === undefined) return
  const callId = raised.action.callId
  publish(world, session, turn.id, 'question.asked', { open: { call_id: callId, question } })
  const resolution = await settled(scene, raised)
  run.last = resolution.kind === 'answered' ? resolution.text : ''
  publish(world, session, turn.id, 'question.answered', { open: { call_id: callId, answer: run.last } })
}

/** Does what the session's rules and mode allow; what they block is answered with a sentence to the agent. */
async function attempt(scene: Scene, what: Attempt, act: () => void): Promise<void> {
  const { world, session, turn } = scene
  const decision = decisionOn(world, session, what)
  if (decision.verdict === 'deny') {
    const { code, sentence } = decision
    publish(world, session, turn.id, 'approval.resolved', {
      stated: {
        approved: false,
        toolCallId: newCallId(turn, session),
        name: what.tool,
        code,
        message: sentence,
      },
    })
    return
  }
  if (
    decision.verdict === 'ask' &&
    !(await allowed(scene, what.tool, what.command ?? what.path ?? what.tool))
  )
    return
  act()
}

function shell(scene: Scene, command: string): void {
  const { world, session, run, turn } = scene
  const callId = newCallId(turn, session)
  const stated = { toolName: 'shell', args: { command } }
  publish(world, session, turn.id, 'agent.tool_call', { stated, open: { call_id: callId } })
  publishTransient(world, session, turn.id, 'agent.progress', {
    open: { call_id: callId, text: `$ ${command}` },
  })
  const output = command.startsWith('echo ') ? command.slice('echo '.length) : `(ran: ${command})`
  toolResult(scene, 'shell', callId, output, false)
  run.last = output
}

function toolResult(
  { world, session, turn }: Pick<Scene, 'world' | 'session' | 'turn'>,
  name: string,
  callId: string,
  output: string,
  failed: boolean,
): void {
  publish(world, session, turn.id, 'agent.tool_result', {
    stated: { toolName: name },
    open: { call_id: callId, output, is_error: failed },
  })
}

function write(scene: Scene, step: Extract<Step, { do: 'write' | 'write_size' }>): Promise<void> {
  const { world, session, run, turn } = scene
  const path = posix.normalize(step.path.replace(/^\/workspace\//, ''))
  if (path.startsWith('..') || path.startsWith('/')) {
    throw new TurnEnd('failed', { code: 'agent_failed', message: `${step.path} is outside the workspace` })
  }
  return attempt(scene, { tool: 'write', path }, () => {
    const bytes = bytesOf(step, run.last, world.limits.artifactBytes)
    const size = step.do === 'write_size' ? step.bytes : (bytes?.length ?? 0)
    session.workspace.files.set(path, { size, bytes })
    if (path.startsWith(OUTPUTS)) run.written.add(path)
    publish(world, session, turn.id, 'file.changed', { open: { path, size_bytes: size } })
  })
}

/** Null for a file over the artifact ceiling: nobody may ever fetch it, so only its size is kept. */
function bytesOf(
  step: Extract<Step, { do: 'write' | 'write_size' }>,
  last: string,
  ceiling: number,
): Buffer | null {
  if (step.do === 'write') return Buffer.from(fillIn(step.content, last))
  return step.bytes > ceiling ? null : Buffer.alloc(step.bytes)
}

function preview({ world, session, turn }: Scene, port: number): void {
  session.preview = { ...session.preview, port, url: `http://${session.id}.preview.invalid:${port}` }
  touch(session, world.clock.now())
  publish(world, session, turn.id, 'preview.ready', { open: { port, url: session.preview.url } })
}

/** Waits, for ever when `ms` is null, until time, steering or the end of the turn. */
async function wait({ world, run }: Scene, ms: number | null): Promise<void> {
  const { signal } = run.controller
  const steered = new Promise<void>((resolve) => (run.interrupt = resolve))
  const stop = new AbortController()
  const either = AbortSignal.any([signal, stop.signal])
  const time = ms === null ? forever(either) : world.clock.wait(ms, either)
  try {
    await Promise.race([time, steered])
  } finally {
    run.interrupt = null
    stop.abort(new Error('no longer waited for'))
  }
}

/** Settles only by rejecting, when `signal` is aborted. */
function forever(signal: AbortSignal): Promise<never> {
  return aborted(signal)
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) return reject(signal.reason as Error)
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}

function newCallId(turn: Turn, session: Session): string {
  return `call_${turn.id.slice('turn_'.length, 17)}${session.items.length.toString(16).padStart(8, '0')}`
}

function toolOf(step: Step): string {
  return step.do === 'write_size' ? 'write' : step.do
}
