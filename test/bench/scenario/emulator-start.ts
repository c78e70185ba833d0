import { Type } from 'typebox'
import { Child } from '../child.ts'
import { milliseconds } from '../measure.ts'
import type { Scenario } from '../scenario.ts'

const START = 'emulator-start'
const IMPORT = 'emulator-start, import'

const Took = Type.Object({ importing: Type.Number(), starting: Type.Number() })

/** Starting an emulator in a process that is fresh, and loading its code there before. */
export const emulatorStart: Scenario = {
  measures: [milliseconds(START, 200), milliseconds(IMPORT, 1000)],
  async open() {
    return {
      async ours() {
        await using starter = await Child.fork('starter')
        const { importing, starting } = await starter.ask('start', Took)
        return { [START]: starting, [IMPORT]: importing }
      },
    }
  },
}
