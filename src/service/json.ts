import { DEEPEST, isTooDeep } from '../core/depth.ts'
import { parseJson } from '../core/json.ts'

/**
 * Reads the JSON text of an answer.
 * @throws {Error} on text that is not JSON, or that is nested too deeply.
 */
export function readJson(text: string): unknown {
  if (isTooDeep(text)) throw new Error(`nested more than ${DEEPEST} levels deep`)
  return parseJson(text)
}
