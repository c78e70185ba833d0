import { codeOf, messageOf, OperatorError } from '../std/errors.ts'
import { loadScenario, type Scenario } from '../emulator/index.ts'

const EXAMPLE = 'config/scenarios/example.yaml has one of everything, with comments'

/**
 * @throws {OperatorError} with every fault of the file.
 */
export function readScenario(file: string): Scenario {
  try {
    return loadScenario(file)
  } catch (error) {
    const missing = codeOf(error instanceof Error ? error.cause : null) !== ''
    throw new OperatorError(
      messageOf(error),
      2,
      missing ? 'correct the path: it starts in the folder of the command' : EXAMPLE,
    )
  }
}
