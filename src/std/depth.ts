import { parseJson, PASSED_ON, type JsonObject } from './json.ts'
import { endOfString, nextStructure, OPEN_BRACE, OPEN_BRACKET, QUOTE } from './scan.ts'

/** The maximum nesting of a document that our code, and the code of its readers, must handle. */
const DEEPEST = 500

/**
 * Whether a JSON text nests deeper than it can be written again: `JSON.parse` accepts about ten times the nesting that
 * `JSON.stringify` can write. It scans the text, so that the parser never gets a document that is too deep.
 */
export function isTooDeep(text: string): boolean {
  if (text.length <= 2 * DEEPEST) return false
  let depth = 0
  for (let at = nextStructure(text, 0); at < text.length; at = nextStructure(text, at)) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at)
    else {
      depth += code === OPEN_BRACKET || code === OPEN_BRACE ? 1 : -1
      if (depth > DEEPEST) return true
      at++
    }
  }
  return false
}

/** @throws {Error} on text that is not JSON, or that nests too deep. */
export function readJson(text: string): unknown {
  refuseTooDeep(text)
  return parseJson(text)
}

/**
 * Parses a resource that is passed on: members that the sidecar never reads stay text, which `writeJson` writes.
 * @throws {Error} as `readJson`.
 */
export function readResource(text: string): unknown {
  refuseTooDeep(text)
  return parseJson(text, PASSED_ON)
}

function refuseTooDeep(text: string): void {
  if (isTooDeep(text)) throw new Error(`nested more than ${DEEPEST} levels deep`)
}

/** Parses JSON that the store wrote itself. */
export function objectOf(text: string): JsonObject {
  return parseJson(text, PASSED_ON) as JsonObject
}
