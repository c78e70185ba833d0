import { setTimeout as pause } from 'node:timers/promises'
import type { Figures } from '../measure.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { median } from '../statistics.ts'
import { CALLING_TURN, Emulated } from './emulated.ts'

const NAME = 'function call'
const CALLS = 60
/** Turns before those that are counted, without a pause: a sidecar that has run for an hour has its code compiled. */
const UNCOUNTED = 300
/** Between two turns, milliseconds: whatever a turn leaves to do is done. It is read once more 60 ms after its end. */
const APART = 150

/** From the frame that asks for a function to its answer arriving at the service, with the same tool over HTTP between. */
export const calls: Scenario = {
  measures: [
    {
      name: NAME,
      unit: 'ms p50',
      digits: 2,
      judge: (ours, baseline) => ours - baseline,
      judged: 'added # ms',
      floor: { at: 'most', value: 1, fdatasyncs: 4 },
      goal: { value: 1, fdatasyncs: 3 },
    },
  ],
  async open(bench) {
    const stage = await Emulated.open(bench)
    return {
      async ours() {
        await using subject = await stage.startSubject()
        const figures = await answer(stage, bench)
        await subject.stop()
        return figures
      },
      async baseline() {
        await using _loop = await stage.startLoop()
        return await answer(stage, bench)
      },
    }
  },
}

async function answer(stage: Emulated, bench: Bench): Promise<Figures> {
  for (let turn = 0; turn < bench.scaled(UNCOUNTED); turn++) await stage.turn(CALLING_TURN)
  const times: number[] = []
  for (let turn = 0; turn < bench.scaled(CALLS); turn++) {
    await pause(APART)
    times.push(await stage.turn(CALLING_TURN))
  }
  return { [NAME]: median(times) }
}
