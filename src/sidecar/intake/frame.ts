import type { PersistedEvent } from '../../core/event-type.ts'
import { streamFactId, transcriptType, type Fact } from '../../core/fact.ts'
import type { Frame, Meaning } from '../../protocol/frame.ts'
import type { Hint, HintScope } from '../../core/hint.ts'
import { isTooDeep } from '../../std/depth.ts'
import { isObject, stringOf, type JsonObject } from '../../std/json.ts'
import { memberTexts } from '../../std/member.ts'
import { callIn, digitsOf, sessionIn, turnIn } from '../../protocol/mention.ts'

/**
 * What a frame asks the reconciler to look at. Delays, in milliseconds, let hints that come together cost one reading; the
 * end of a turn waits for artifacts that settle at once.
 */
interface News {
  scope: HintScope
  delay: number
  subject?: string
}

const NEWS: Readonly<Record<string, News | null>> = {
  'turn.started': { scope: 'turns', delay: 30, subject: 'turn.started' },
  'turn.ended': { scope: 'turns', delay: 60, subject: 'turn.final' },
  'tool.required': { scope: 'session', delay: 0, subject: 'action.required' },
  'approval.requested': { scope: 'session', delay: 0, subject: 'action.required' },
  'question.asked': { scope: 'session', delay: 0, subject: 'action.required' },
  'tool.resolved': { scope: 'session', delay: 300, subject: 'action.resolved' },
  'approval.resolved': { scope: 'session', delay: 300, subject: 'action.resolved' },
  'question.answered': { scope: 'session', delay: 300, subject: 'action.resolved' },
  'artifact.created': { scope: 'artifacts', delay: 400 },
  'agent.error': { scope: 'turns', delay: 300 },
  'mcp.unavailable': { scope: 'turns', delay: 300 },
  'workspace.recovery_failed': { scope: 'turns', delay: 300 },
  'message.dequeued': { scope: 'turns', delay: 300 },
  // These change nothing that a state fact tells of.
  'agent.message': null,
  'agent.tool_call': null,
  'agent.tool_result': null,
  'agent.compaction': null,
  'agent.todos': null,
  'user.message': null,
  'message.queued': null,
  'file.changed': null,
  'sandbox.created': null,
  'sandbox.paused': null,
  'sandbox.resumed': null,
  'preview.ready': null,
} satisfies Record<PersistedEvent, News | null>

/** A name that this version does not know may mean anything: look, but not at once. */
const UNKNOWN_NEWS: News = { scope: 'turns', delay: 1000 }
/** A frame that names no session may concern any: the wish for a sweep, shared by all such frames. */
const SWEEP_DELAY = 2000

/** What can stand in a header: a cursor that cannot be sent would never open a stream again. */
const CURSOR = /^[\u0021-\u007e]{1,256}$/

/** Turns a frame into a fact, a transient event, or a reason why it is neither. `at`: our wall clock. */
export function readFrame(frame: Frame, at: number): Meaning {
  const line = frame.id === undefined || frame.id === '' ? null : frame.id
  if (line !== null && !CURSOR.test(line)) {
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
  const ofData = (): string => frame.data
  const ofPayload = (): string => memberTexts(frame.data, ['payload'])[0] ?? ''
  const seq = line ?? digitsAt(data, 'seq', ofData)
  const fromSeq = digitsAt(data, 'from_seq', ofData) ?? digitsAt(payload, 'from_seq', ofPayload)
  // An event that is persisted may have a member of that name for its own reasons.
  if (fromSeq !== null && seq === null) return { kind: 'stop', fromSeq }
  const name = stringOf(data.type) ?? stringOf(frame.event)
  if (name === null) return { kind: 'unreadable', reason: 'the frame has no type', seq: line }
  const sessionId = sessionIn(data, payload)
  if (seq === null) return { kind: 'transient', type: name, sessionId, body: frame.data }
  const turnId = turnIn(data, payload)
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
  const ended =
    name === 'turn.ended' && turnId !== null && sessionId !== null ? { turnId, sessionId, at } : null
  return { kind: 'fact', name, seq, fact, hints: hintsOf(name, sessionId, turnId, data, payload, at), ended }
}

/**
 * The digits of a member of `holder`, whose text is `text()`. A seq that a double cannot hold is read from the text. Nothing
 * else in a frame needs this: the text itself is what is stored and handed on.
 */
function digitsAt(holder: JsonObject, name: 'seq' | 'from_seq', text: () => string): string | null {
  const value = holder[name]
  return digitsOf(isInexact(value) ? memberTexts(text(), [name])[0] : value)
}

function isInexact(value: unknown): boolean {
  return typeof value === 'number' && !Number.isSafeInteger(value)
}

function hintsOf(
  name: string,
  sessionId: string | null,
  turnId: string | null,
  data: JsonObject,
  payload: JsonObject,
  at: number,
): Hint[] {
  const news = Object.hasOwn(NEWS, name) ? NEWS[name] : UNKNOWN_NEWS
  if (news === null || news === undefined) return []
  if (sessionId === null) return [{ sessionId, channel: 'stream', at, scope: 'session', delay: SWEEP_DELAY }]
  const hint: Hint = { sessionId, channel: 'stream', at, scope: news.scope, delay: news.delay }
  if (news.subject !== undefined) {
    const key = news.subject.startsWith('turn') ? turnId : callIn(data, payload)
    if (key !== null) hint.subject = `${news.subject}/${key}`
  }
  return [hint]
}
