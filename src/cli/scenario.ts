import { codeOf, messageOf, OperatorError } from '../std/errors.ts'
import { loadScenario, type Scenario } from '../emulator/index.ts'

const EXAMPLE = 'compare it with config/scenarios/example.yaml, which shows every key'

/**
 * @throws {OperatorError} with every fault of the file.
 */
export function readScenario(file: string): Scenario {
  try {
    return loadScenario(file)
  } catch (error) {
    const code = codeOf(error instanceof Error ? error.cause : null)
    throw new OperatorError(
      code === 'ENOENT' ? `${file} does not exist` : messageOf(error),
      2,
      code === ''
        ? EXAMPLE
        : 'correct the path; a relative path starts in the folder where you call the command',
    )
  }
}
