import { setTimeout as pause } from 'node:timers/promises'
import { Type } from 'typebox'
import type { Measure } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { CALLING_TURN, Emulated, PLAIN_TURN } from './emulated.ts'

const PLAIN = 'requests, plain turn'
const CALLING = 'requests, turn with a call'
const TURNS = 3
/** A turn costs nothing more once no request was made for so long, milliseconds. */
const QUIET = 1000
/** Longest until a turn is delivered as settled, milliseconds. */
const SETTLING = 10_000

/** Requests to the service that one turn costs, the most of a few, with the stream up. */
export const requests: Scenario = {
  measures: [most(PLAIN, 3, 3), most(CALLING, 6, 5)],
  async open(bench) {
    const stage = await Emulated.open(bench)
    return {
      async ours() {
        await using subject = await stage.startSubject()
        const cost = {
          [PLAIN]: await costliest(stage, PLAIN_TURN),
          [CALLING]: await costliest(stage, CALLING_TURN),
        }
        await subject.stop()
        return cost
      },
    }
  },
}

function most(name: string, floor: number, goal: number): Measure {
  return {
    name,
    unit: 'requests',
    digits: 0,
    judge: (ours) => ours,
    judged: '# requests',
    floor: { at: 'most', value: floor },
    goal: { value: goal },
  }
}

async function costliest(stage: Emulated, text: string): Promise<number> {
  const costs: number[] = []
  while (costs.length < TURNS) {
    await stage.service.do('quiet', { ms: QUIET })
    const before = await settled(stage)
    await stage.turn(text)
    const limit = performance.now() + SETTLING
    while ((await settled(stage)) === before) {
      if (performance.now() > limit) throw new Error('a turn was not delivered as settled')
      await pause(20)
    }
    costs.push(await stage.service.ask('quiet', Type.Integer(), { ms: QUIET }))
  }
  return Math.max(...costs)
}

async function settled({ receiver }: Emulated): Promise<number> {
  return await receiver.ask('settled', Type.Integer())
}
