import { TurnEnd } from '../turn.ts'
import { call } from './call.ts'
import { fillIn } from './fill.ts'
import { approvedByPerson, ask, ifAllowed } from './person.ts'
import type { Scene } from './scene.ts'
import { burst, say, think } from './speak.ts'
import type { Step } from './step.ts'
import { wait } from './wait.ts'
import { pathOf, preview, shell, write } from './work.ts'

/** Performs one step; throws `TurnEnd` when the step ends the turn, rejects when the turn is ended from outside. */
export async function perform(scene: Scene, step: Step): Promise<void> {
  switch (step.do) {
    case 'say':
      return say(scene, fillIn(step.text, scene.run.last))
    case 'think':
      return think(scene, step.text)
    case 'call':
      return call(scene, step.calls)
    case 'shell':
      return ifAllowed(scene, { tool: 'shell', command: step.command }, () => shell(scene, step.command))
    case 'write':
    case 'write_size': {
      const path = pathOf(step)
      return ifAllowed(scene, { tool: 'write', path }, () => write(scene, step, path))
    }
    case 'approve':
      if (await approvedByPerson(scene, toolOf(step.step), step.line)) await perform(scene, step.step)
      return
    case 'ask':
      return ask(scene, step.question)
    case 'preview':
      return ifAllowed(scene, { tool: 'preview' }, () => preview(scene, step.port))
    case 'wait':
      return wait(scene, step.ms)
    case 'hang':
      return wait(scene, null)
    case 'fail':
      throw new TurnEnd('failed', { code: 'agent_failed', message: step.reason })
    case 'cannot_start':
      // It had started: the line only keeps a run from starting when it comes first.
      throw new TurnEnd('failed', { code: 'agent_failed', message: `cannot start: ${step.reason}` })
    case 'burst':
      return burst(scene, step.count, step.bytes)
    case 'collect':
      scene.run.collectMs = step.ms
  }
}

function toolOf(step: Step): string {
  return step.do === 'write_size' ? 'write' : step.do
}
