import { streamFactId, transcriptType, type Fact } from '../../core/fact.ts'
import type { Frame, Meaning } from '../../protocol/frame.ts'
import type { Hint } from '../../core/hint.ts'
import { isTooDeep } from '../../std/depth.ts'
import { isShort } from '../../core/id.ts'
import { isCursor } from '../../core/seq.ts'
import { isObject, stringOf, type JsonObject } from '../../std/json.ts'
import { FRAME_IMPLICATIONS, FRAME_WITHOUT_SESSION, UNKNOWN_FRAME } from '../../protocol/implications.ts'
import { callIn, seqIn, sessionIn, stopIn, turnIn } from '../../protocol/mention.ts'

/** Turns a frame into a fact, a transient event, or a reason why it is neither. `at`: our wall clock. */
export function readFrame(frame: Frame, at: number): Meaning {
  const line = frame.id === undefined || frame.id === '' ? null : frame.id
  if (line !== null && !isCursor(line)) {
    return { kind: 'unreadable', reason: 'its id cannot be sent back as a cursor', seq: null }
  }
  if (isTooDeep(frame.data)) return { kind: 'unreadable', reason: 'data nests too deep', seq: line }
  let data: unknown
  try {
    data = JSON.parse(frame.data)
  } catch {
    return { kind: 'unreadable', reason: 'data is not JSON', seq: line }
  }
  if (!isObject(data)) return { kind: 'unreadable', reason: 'data is not an object', seq: line }
  const payload = isObject(data.payload) ? data.payload : {}
  const seq = line ?? seqIn(data, frame.data)
  const fromSeq = stopIn(seq, data, payload, frame.data)
  if (fromSeq !== null) return { kind: 'stop', fromSeq }
  const name = stringOf(data.type) ?? stringOf(frame.event)
  if (name === null) return { kind: 'unreadable', reason: 'the frame has no type', seq: line }
  const sessionId = sessionIn(data, payload)
  if (seq === null) return { kind: 'transient', type: name, sessionId, body: frame.data }
  const turnId = turnIn(data, payload)
  if (!isShort(sessionId ?? '') || !isShort(turnId ?? ''))
    return { kind: 'unreadable', reason: 'an id in it is too long', seq }
  const fact: Fact = {
    id: streamFactId(seq, sessionId),
    type: transcriptType(name),
    sessionId,
    turnId,
    at,
    family: 'transcript',
    seq,
    body: frame.data,
    seen: { stream: at },
    subject: null,
  }
  return { kind: 'fact', name, seq, fact, hints: hintsOf(name, fact, data, payload) }
}

function hintsOf(
  name: string,
  { sessionId, turnId, at }: Fact,
  data: JsonObject,
  payload: JsonObject,
): Hint[] {
  const implied = FRAME_IMPLICATIONS.get(name)
  if (implied === null) return []
  const { scope, delay, subject } = sessionId === null ? FRAME_WITHOUT_SESSION : (implied ?? UNKNOWN_FRAME)
  const hint: Hint = { sessionId, channel: 'stream', at, scope, delay }
  if (subject !== undefined) {
    const key = subject.startsWith('turn') ? turnId : callIn(data, payload)
    if (key !== null && isShort(key)) hint.subject = `${subject}/${key}`
  }
  return [hint]
}
