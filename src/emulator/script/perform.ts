import { TurnEnd } from '../turn.ts'
import { attemptOf } from './attempt.ts'
import { call } from './call.ts'
import { fillIn } from './fill.ts'
import { approvedByPerson, ask, permitted } from './person.ts'
import { compact, todos } from './memory.ts'
import type { Scene } from './scene.ts'
import { burst, say, think } from './speak.ts'
import type { Step } from '../step.ts'
import { use } from './use.ts'
import { wait } from './wait.ts'
import { commit, preview, read, serve, shell, write } from './work.ts'

/** Performs one step; throws `TurnEnd` when the step ends the turn, rejects when the turn is ended from outside. */
export async function perform(scene: Scene, given: Step): Promise<void> {
  const step = fillIn(scene, given)
  if (step.do !== 'approve') {
    if (await permitted(scene, attemptOf(scene, step))) await act(scene, step)
    return
  }
  const attempt = attemptOf(scene, step.step)
  if (attempt !== null) {
    if (await permitted(scene, attempt, step.line)) await act(scene, step.step)
  } else if (await approvedByPerson(scene, step.step.do, step.line)) {
    await act(scene, step.step)
  }
}

async function act(scene: Scene, step: Step): Promise<void> {
  switch (step.do) {
    case 'say':
      return say(scene, step.text)
    case 'think':
      return think(scene, step.text)
    case 'call':
      return call(scene, step.calls)
    case 'shell':
      return shell(scene, step)
    case 'read':
      return read(scene, step)
    case 'write':
    case 'write_size':
      return write(scene, step)
    case 'serve':
      return serve(scene, step)
    case 'preview':
      return preview(scene, step.port)
    case 'commit':
      return commit(scene, step.message)
    case 'use':
      return use(scene, step)
    case 'approve':
      return perform(scene, step)
    case 'ask':
      return ask(scene, step.question)
    case 'todos':
      return todos(scene, step.todos)
    case 'compact':
      return compact(scene, step.messages)
    case 'wait':
      return wait(scene, step.ms)
    case 'hang':
      return wait(scene, null)
    case 'fail':
      throw new TurnEnd('failed', { code: step.code ?? 'agent_failed', message: step.reason })
    case 'cannot_start':
      // This step has an effect only as the first one: later, the run has started already.
      throw new TurnEnd('failed', { code: 'agent_failed', message: `cannot start: ${step.reason}` })
    case 'burst':
      return burst(scene, step.count, step.bytes)
    case 'collect':
      scene.run.collectMs = step.ms
      return
    case 'faults':
      return strike(scene, step.settings)
  }
}

/** Sets faults. They are checked here, because a program may have built the settings. */
function strike({ world }: Scene, settings: Readonly<Record<string, unknown>>): void {
  try {
    world.faults.set(settings)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new TurnEnd('failed', { code: 'agent_failed', message })
  }
}
