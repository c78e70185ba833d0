import { randomBytes } from 'node:crypto'
import { setImmediate as nextLoop } from 'node:timers/promises'
import { collectArtifacts } from './collect.ts'
import { publish, publishTransient } from './publish.ts'
import { Refusal } from './refusal.ts'
import { dropActions } from './requirement.ts'
import { newRun, type Run } from './run.ts'
import { unreachableRequired } from './mcp.ts'
import { scriptFor, type Script } from './scenario/script.ts'
import { perform } from './script/perform.ts'
import type { Scene } from './script/scene.ts'
import { touch, type Message, type Session } from './session.ts'
import { setStatus } from './status.ts'
import { wakeWorkspace } from './sandbox.ts'
import { settingsNow } from './settings.ts'
import { newTurn, TurnEnd } from './turn.ts'
import type { World } from './world.ts'

/**
 * Accepts a message: starts a run, or queues the message behind the run under way. Returns its position in the queue,
 * from 1, or null when its run starts at once. @throws {Refusal} `queue_full` when the queue is full.
 */
export function acceptMessage(
  world: World,
  session: Session,
  text: string,
): { message: Message; position: number | null } {
  const message = { id: `msg_${randomBytes(12).toString('hex')}`, text, at: world.clock.now() }
  if (session.run === null) {
    begin(world, session, message)
    return { message, position: null }
  }
  if (session.queue.length >= world.limits.queuedMessages) {
    const { queueFullStatus } = world.details
    throw new Refusal(
      queueFullStatus,
      'queue_full',
      `${world.limits.queuedMessages} messages are queued already`,
    )
  }
  session.queue.push(message)
  publish(world, session, session.run.turn?.id ?? null, 'message.queued', {
    open: { message_id: message.id, text, position: session.queue.length },
  })
  return { message, position: session.queue.length }
}

/** Inserts the lines of `text` before the rest of the running turn. False when no turn runs. */
export function steer(world: World, session: Session, text: string): boolean {
  const { run } = session
  if (run?.turn == null) return false
  publish(world, session, run.turn.id, 'user.message', { stated: { text }, open: { steered: true } })
  const { instructions } = settingsNow(world, session)
  run.steered.push(...scriptFor(world.scenario, text, instructions).steps)
  run.interrupt?.()
  return true
}

/** Stops the running turn. The profile names its final status, because the interface does not. */
export function cancelTurn(session: Session): void {
  session.run?.controller.abort(new TurnEnd('stopped', null))
}

/**
 * The emulator was stopped during a run, which is lost with the process, and starts again. The turn of the run fails
 * as if its workspace had been reclaimed; a run without a turn counts as one that could not start. Then the next
 * message is started.
 */
export function endInterrupted(world: World, session: Session, run: Run): void {
  session.run = run
  if (session.workspace.exists) session.workspace.reclaim()
  const message = 'the workspace was reclaimed when the service stopped'
  if (run.turn === null) {
    publish(world, session, null, 'agent.error', { open: { code: 'run_not_started', message } })
  } else {
    endTurn(world, session, run, new TurnEnd('failed', { code: 'workspace_reclaimed', message }))
  }
  finish(world, session, run, true)
}

function begin(world: World, session: Session, message: Message): void {
  const run = newRun(message.text)
  session.run = run
  drive(world, session, run, message).catch((error: unknown) => {
    // Only the deletion of its session or the end of the emulator leaves a run unfinished.
    if (error !== run.controller.signal.reason) throw error
  })
}

/** One run: the message, the workspace, the turn, and then the next queued message. */
async function drive(world: World, session: Session, run: Run, message: Message): Promise<void> {
  const { signal } = run.controller
  publish(world, session, null, 'user.message', {
    stated: { text: message.text },
    open: { message_id: message.id },
  })
  setStatus(world, session, 'working')
  // The reply to the message is sent before the turn exists.
  await nextLoop()
  signal.throwIfAborted()
  const script = scriptFor(world.scenario, message.text, settingsNow(world, session).instructions)
  const obstacle = whyNotStart(world, session, script)
  if (obstacle === undefined) {
    await runTurn(world, session, run, script)
  } else {
    publish(world, session, null, 'agent.error', { open: { code: 'run_not_started', message: obstacle } })
  }
  finish(world, session, run, obstacle !== undefined || run.turn?.status === 'failed')
}

function whyNotStart(world: World, session: Session, { steps }: Script): string | undefined {
  if (session.agent.model === null) return 'this session has no model; connect one and choose it'
  const [first] = steps
  if (first?.do === 'cannot_start') return first.reason
  if (!session.workspace.exists && world.faults.use('fail_provisioning'))
    return 'the workspace was not provisioned'
  return unreachableRequired(world, session)
}

async function runTurn(world: World, session: Session, run: Run, script: Script): Promise<void> {
  wakeWorkspace(world, session)
  const turn = newTurn(session.id, world.clock.now(), script.subagent)
  run.turn = turn
  session.turns.push(turn)
  touch(session, world.clock.now())
  publish(world, session, turn.id, 'turn.started')
  publishTransient(world, session, turn.id, 'agent.status', { open: { status: 'thinking' } })
  let end = new TurnEnd('stopped', null)
  let completed = false
  try {
    const settings = settingsNow(world, session)
    await performAll({ world, session, run, turn, settings }, script)
    completed = true
  } catch (error) {
    const reason: unknown = run.controller.signal.aborted ? run.controller.signal.reason : error
    if (!(reason instanceof TurnEnd)) throw reason
    end = reason
  }
  endTurn(world, session, run, completed ? null : end)
}

async function performAll(scene: Scene, { steps }: Script): Promise<void> {
  const { run } = scene
  const rest = [...steps]
  for (;;) {
    const step = run.steered.shift() ?? rest.shift()
    if (step === undefined) return
    await perform(scene, step)
    run.controller.signal.throwIfAborted()
  }
}

function endTurn(world: World, session: Session, run: Run, end: TurnEnd | null): void {
  const { turn } = run
  if (turn === null) return
  dropActions(world, session)
  turn.status = end === null ? 'completed' : end.status
  turn.error = end?.error ?? null
  turn.completedAt = world.clock.now()
  if (turn.error !== null) {
    publish(world, session, turn.id, 'agent.error', { open: { ...turn.error } })
  }
  // `turn.ended` says nothing about success: the status of the turn does.
  publish(world, session, turn.id, 'turn.ended')
  if (turn.status === 'failed') world.webhooks.send('turn.failed', session.id, turn.id)
  collectArtifacts(world, session, turn, run.collectMs)
}

function finish(world: World, session: Session, run: Run, failed: boolean): void {
  if (session.run !== run || session.deletedAt !== null) return
  session.workspace.idle()
  session.run = null
  const next = session.queue.shift()
  if (next === undefined) return setStatus(world, session, failed ? 'failed' : 'idle')
  touch(session, world.clock.now())
  publish(world, session, null, 'message.dequeued', { open: { message_id: next.id } })
  begin(world, session, next)
}
