import { isObject, stringOf, type JsonObject } from '../std/json.ts'
import { isWhole } from '../core/seq.ts'

/** Where a frame mentions what it is about is not shown: the data, then the payload, under either spelling. */

export function sessionIn(data: JsonObject, payload: JsonObject): string | null {
  return idIn(data, payload, ['session_id', 'sessionId', 'session'])
}

export function turnIn(data: JsonObject, payload: JsonObject): string | null {
  return idIn(data, payload, ['turn_id', 'turnId', 'turn'])
}

export function callIn(data: JsonObject, payload: JsonObject): string | null {
  return idIn(data, payload, ['call_id', 'callId', 'tool_call_id', 'toolCallId'])
}

function idIn(data: JsonObject, payload: JsonObject, keys: readonly string[]): string | null {
  for (const holder of [data, payload]) {
    for (const key of keys) {
      const value = holder[key]
      const id = stringOf(isObject(value) ? value.id : value)
      if (id !== null) return id
    }
  }
  return null
}

/** A seq given as a number or as text; every digit is kept. */
export function digitsOf(value: unknown): string | null {
  if (typeof value === 'string') return isWhole(value) ? value : null
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? String(value) : null
  // parseJson keeps a number that a double cannot hold as raw JSON.
  if (
    typeof value === 'object' &&
    value !== null &&
    'rawJSON' in value &&
    typeof value.rawJSON === 'string'
  ) {
    return digitsOf(value.rawJSON)
  }
  return null
}
