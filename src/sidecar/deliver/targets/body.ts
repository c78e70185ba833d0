import { CHANNELS, type Seen, type StoredFact } from '../../../core/fact.ts'
import { memberTexts } from '../../../std/member.ts'
import type { SessionSummary } from '../../../core/resource.ts'

const FRAME_MEMBERS = ['payload', 'internal_type']

/**
 * The `data` of a callback as JSON text (src/sidecar/README.md, Callbacks). Transcript facts keep the frame as received and get
 * what we know of the session beside it; state facts carry what was read.
 */
export function dataText(fact: StoredFact, session: SessionSummary | null): string {
  if (fact.family === 'state') return fact.body
  const [payload = 'null', internalType = 'null'] = memberTexts(fact.body, FRAME_MEMBERS)
  return (
    // If a frame has no payload, `payload` is an empty object, so that a handler can read a field of it.
    `{"payload":${payload === 'null' ? '{}' : payload},"internal_type":${internalType},` +
    `"seq":${seqText(fact.seq)},"session":${summaryText(session)}}`
  )
}

/** Many callbacks in a row have the same summary of a session: its text is made once. */
const summaryTexts = new WeakMap<SessionSummary, string>()

function summaryText(session: SessionSummary | null): string {
  if (session === null) return 'null'
  let text = summaryTexts.get(session)
  if (text === undefined) summaryTexts.set(session, (text = JSON.stringify(session)))
  return text
}

/** A seq beyond what a double holds is given as text, so that no reader rounds it. */
function seqText(seq: string | null): string {
  if (seq === null) return 'null'
  return /^(0|[1-9]\d{0,14})$/.test(seq) ? seq : JSON.stringify(seq)
}

/** The body of one callback. Its `timestamp` is the time of the fact, the same in every attempt. */
export function callbackText(
  fact: Pick<StoredFact, 'id' | 'type' | 'sessionId' | 'at' | 'seen'>,
  data: string,
  delivery: Delivery,
): string {
  return (
    `{"type":${JSON.stringify(fact.type)},"timestamp":"${isoTime(fact.at)}","id":"${fact.id}",` +
    `"session_id":${JSON.stringify(fact.sessionId)},"data":${data},` +
    `"delivery":${deliveryText(delivery)},"seen":${seenText(fact.seen)}}`
  )
}

/** The same callback as a CloudEvent 1.0 in structured JSON. Fields without a CloudEvents attribute go into `data`. */
export function cloudEventText(
  fact: Pick<StoredFact, 'id' | 'type' | 'sessionId' | 'at' | 'seen'>,
  data: string,
  delivery: Delivery,
  source: string,
): string {
  const subject = fact.sessionId === null ? '' : `"subject":${JSON.stringify(fact.sessionId)},`
  return (
    `{"specversion":"1.0","id":"${fact.id}","source":${JSON.stringify(source)},"type":${JSON.stringify(fact.type)},` +
    `${subject}"time":"${isoTime(fact.at)}","datacontenttype":"application/json",` +
    `"data":{"session_id":${JSON.stringify(fact.sessionId)},"data":${data},` +
    `"delivery":${deliveryText(delivery)},"seen":${seenText(fact.seen)}}}`
  )
}

interface Delivery {
  attempt: number
  handler: string
  /** It delivers a test fact. */
  test?: boolean
}

function deliveryText({ attempt, handler, test = false }: Delivery): string {
  return `{"attempt":${attempt},"handler":"${handler}"${test ? ',"test":true' : ''}}`
}

/** `Date` is slow, and most facts of a burst are of the same second: the text of the last second is kept. */
let second = 0
let secondText = '1970-01-01T00:00:00.'

function isoTime(at: number): string {
  const from = Math.floor(at / 1000)
  if (from !== second) {
    secondText = new Date(from * 1000).toISOString().slice(0, -4)
    second = from
  }
  return `${secondText}${String(Math.floor(at - from * 1000)).padStart(3, '0')}Z`
}

function seenText(seen: Seen): string {
  let text = ''
  for (const channel of CHANNELS) {
    const at = seen[channel]
    if (at !== undefined) text += `${text === '' ? '{' : ','}"${channel}":${at}`
  }
  return text === '' ? '{}' : `${text}}`
}
