import { hash } from 'node:crypto'
import { isWhole } from './seq.ts'

/** A channel reports changes: the stream, a webhook, or our own polling. */
export type Channel = 'stream' | 'webhook' | 'poll'

export const CHANNELS: readonly Channel[] = ['stream', 'webhook', 'poll']

/** When each channel first reported a fact, milliseconds on our wall clock. */
export type Seen = Partial<Record<Channel, number>>

/**
 * A normalised event with one permanent id. `id` is made from the fact's natural key alone: it is the same for every
 * channel and replica, and after a crash or a lost database. It is the idempotency key of every callback about the
 * fact.
 */
export interface Fact {
  id: string
  type: string
  /** null for frames that name no session. */
  sessionId: string | null
  turnId: string | null
  /** When it was stored, milliseconds on our wall clock. */
  at: number
  /** `state` facts come from reading a resource, `transcript` facts from a channel. */
  family: 'state' | 'transcript'
  /** The digits of the stream's `seq`; transcript facts from the stream only. */
  seq: string | null
  /** JSON text. Transcript: the frame's data as received. State: the `data` of the callback without `session`. */
  body: string
  seen: Seen
  /**
   * The event that a channel can report without a read: `turn.final/<turn id>`, `session.idle/<session id>`. It
   * connects a state fact with its hints. null on transcript facts.
   */
  subject: string | null
}

/** Types of state facts: only a read of the resource can make them. */
export const STATE_TYPES = [
  'session.created',
  'session.deleted',
  'session.working',
  'session.idle',
  'session.requires_action',
  'session.failed',
  'turn.started',
  'turn.completed',
  'turn.failed',
  'turn.ended',
  'turn.settled',
  'action.required',
  'action.resolved',
  'call.answered',
  'call.failed',
  'call.not_delivered',
] as const

export type StateType = (typeof STATE_TYPES)[number]

const STATE = new Set<string>(STATE_TYPES)
const RENAMED = 'stream.'

/**
 * The type under which a stream frame becomes a fact: its own name, unless a state fact has that
 * name and contains more (`turn.started` becomes `stream.turn.started`).
 */
export function transcriptType(name: string): string {
  return STATE.has(name) ? RENAMED + name : name
}

/** The name of the frame, from the type of its fact. */
export function frameName(type: string): string {
  const name = type.slice(RENAMED.length)
  return type.startsWith(RENAMED) && STATE.has(name) ? name : type
}

const PREFIX = 'evt_'

function digest(text: string, length: number): string {
  return hash('sha256', text, 'base64url').slice(0, length)
}

/**
 * The id of a transcript fact of the stream. It begins with the seq, so that new ids are added at the end of the
 * index, and people can see the order. It ends with a hash of the session, because two services may use the same seq.
 */
export function streamFactId(seq: string, sessionId: string | null): string {
  // Ids are used in headers and paths. The interface allows digits only; any other seq may have any characters.
  const lead = isWhole(seq) ? seq : `q${digest(seq, 22)}`
  return `${PREFIX}${lead}_${sessionTag(sessionId ?? '')}`
}

/**
 * The range of the ids that a stream fact with this seq can have: at least `from`, below `to`. Only the hash of the
 * session, at the end of the id, is not known. The interface gives each seq to one frame, so the range has at most
 * one fact.
 */
export function streamFactIds(seq: string): { from: string; to: string } {
  const from = streamFactId(seq, null).slice(0, -TAG)
  // '`' is the character after `_`.
  return { from, to: from.slice(0, -1) + '`' }
}

/** Every frame needs the tag of its session, a hash of TAG characters; a few thousand tags are cached. */
const TAG = 10
const TAGS_KEPT = 4096
const tags = new Map<string, string>()

function sessionTag(sessionId: string): string {
  let tag = tags.get(sessionId)
  if (tag === undefined) {
    tag = digest(sessionId, TAG)
    if (tags.size >= TAGS_KEPT) tags.clear()
    tags.set(sessionId, tag)
  }
  return tag
}

/** The id of a transcript fact that came from an item. */
export function itemFactId(sessionId: string, itemId: string): string {
  return `${PREFIX}i_${digest(`item\0${sessionId}\0${itemId}`, 24)}`
}

/** The id of a state fact, from its type and natural key (src/sidecar/README.md, Facts). */
export function stateFactId(type: string, ...key: (string | number)[]): string {
  return `${PREFIX}${digest([type, ...key].join('\0'), 26)}`
}

/** Facts with the same id are the same fact. `pos` is the position in our log: it rises and is never used twice. */
export interface StoredFact extends Fact {
  pos: number
}
