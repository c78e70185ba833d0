import { messageOf, OperatorError } from '../std/errors.ts'
import { loadScenario, type Scenario } from '../emulator/index.ts'

/**
 * @throws {OperatorError} with every fault of the file.
 */
export function readScenario(file: string): Scenario {
  try {
    return loadScenario(file)
  } catch (error) {
    throw new OperatorError(messageOf(error), 2)
  }
}
