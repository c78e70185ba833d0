import { isObject, stringOf, type JsonObject } from '../std/json.ts'
import { memberTexts } from '../std/member.ts'
import { isWhole } from '../core/seq.ts'

/** The interface does not specify where a frame has its ids: try the data, then the payload, in both spellings. */

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

/** The seq in the data of a frame. `text`: the JSON text of the data. */
export function seqIn(data: JsonObject, text: string): string | null {
  return digitsAt(data, 'seq', () => text)
}

/**
 * The position from which the rest of a stopped replay must be requested; null for any other frame. The interface does
 * not specify the name of such a frame: it is any frame without a seq but with `from_seq`. A persisted event, such as
 * `agent.compaction`, may have a member of that name with another meaning.
 */
export function stopIn(
  seq: string | null,
  data: JsonObject,
  payload: JsonObject,
  text: string,
): string | null {
  if (seq !== null) return null
  const ofPayload = (): string => memberTexts(text, ['payload'])[0] ?? ''
  return digitsAt(data, 'from_seq', () => text) ?? digitsAt(payload, 'from_seq', ofPayload)
}

/**
 * The digits of a member of `holder`. A number that a double cannot hold is read again from `text()`, the JSON text
 * of `holder`. No other member of a frame needs this, because the text itself is stored and passed on.
 */
function digitsAt(holder: JsonObject, name: 'seq' | 'from_seq', text: () => string): string | null {
  const value = holder[name]
  const inexact = typeof value === 'number' && !Number.isSafeInteger(value)
  return digitsOf(inexact ? memberTexts(text(), [name])[0] : value)
}

/** A seq may be a number or a text; every digit is kept. */
function digitsOf(value: unknown): string | null {
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
