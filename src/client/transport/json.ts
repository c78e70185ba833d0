import { DEEPEST, isTooDeep } from '../../std/depth.ts'
import { parseJson, PASSED_ON } from '../../std/json.ts'

const TOO_DEEP = `nested more than ${DEEPEST} levels deep`

/**
 * Reads the JSON text of an answer.
 * @throws {Error} on text that is not JSON, or that is nested too deeply.
 */
export function readJson(text: string): unknown {
  if (isTooDeep(text)) throw new Error(TOO_DEEP)
  return parseJson(text)
}

/**
 * Reads an answer that the sidecar passes on: what it need not look at stays text. `writeJson` writes it.
 * @throws {Error} as `readJson`.
 */
export function readResource(text: string): unknown {
  if (isTooDeep(text)) throw new Error(TOO_DEEP)
  return parseJson(text, PASSED_ON)
}
