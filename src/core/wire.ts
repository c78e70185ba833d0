import { isObject, numberOf, stringOf, type Json, type JsonObject } from '../std/json.ts'
import { ID_BYTES, isShort } from './id.ts'
import type { Action, Item, Session, Turn } from './resource.ts'

/**
 * Resources as the service sends them, and as we store them. Unknown fields stay in `raw`, null means absent, and the
 * fields that we need are required.
 */

/** An answer lacks a required field. */
export class Malformed extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'Malformed'
  }
}

/** Called for each unreadable entry of a list that was skipped. */
export type OnSkipped = (fault: Malformed) => void

export function readSession(value: unknown, onSkipped: OnSkipped): Session {
  const raw = objectIn(value, 'a session')
  const status = id(raw, 'status', 'a session')
  return {
    id: id(raw, 'id', 'a session'),
    status,
    createdAt: timeOf(raw['created_at']),
    updatedAt: time(raw, 'updated_at', 'a session'),
    title: typeof raw['title'] === 'string' ? raw['title'] : null,
    metadata: stringsOf(raw['metadata']),
    createdByToken: stringOf(raw['created_by_token']),
    actions: parseActions(raw['required_actions'], status, onSkipped),
    raw,
  }
}

/**
 * Only a session that waits for nothing may omit the list. If any session could, a list that is missing by mistake
 * would look empty.
 */
function parseActions(value: unknown, status: string, onSkipped: OnSkipped): Action[] {
  if (value === undefined || value === null) {
    if (status === 'requires_action')
      throw new Malformed('a session that requires action has no required_actions')
    return []
  }
  if (!Array.isArray(value)) throw new Malformed('required_actions of a session is not a list')
  return readable(value, readAction, onSkipped)
}

/** Entries of unknown type are kept, for people and for later versions. */
export function readAction(value: unknown): Action {
  const raw = objectIn(value, 'a required action')
  return {
    type: text(raw, 'type', 'a required action'),
    callId: id(raw, 'call_id', 'a required action'),
    turnId: optionalId(raw, 'turn_id', 'a required action'),
    name: stringOf(raw['name']),
    arguments: raw['arguments'],
    createdAt: timeOf(raw['created_at']),
    expiresAt: timeOf(raw['expires_at']),
    raw,
  }
}

/** `sessionId`: the session of the request, if the turn does not name it. */
export function readTurn(value: unknown, sessionId: string): Turn {
  const raw = objectIn(value, 'a turn')
  return {
    id: id(raw, 'id', 'a turn'),
    sessionId: optionalId(raw, 'session_id', 'a turn') ?? sessionId,
    status: text(raw, 'status', 'a turn'),
    createdAt: timeOf(raw['created_at']),
    startedAt: timeOf(raw['started_at']),
    completedAt: timeOf(raw['completed_at']),
    artifacts: stringOf(raw['artifacts']),
    raw,
  }
}

export function readItem(value: unknown, sessionId: string): Item {
  const raw = objectIn(value, 'an item')
  const { detail } = raw
  return {
    id: id(raw, 'id', 'an item'),
    sessionId: optionalId(raw, 'session_id', 'an item') ?? sessionId,
    type: text(raw, 'type', 'an item'),
    event: isObject(detail) ? stringOf(detail['event']) : null,
    createdAt: timeOf(raw['created_at']),
    raw,
  }
}

/** An unreadable entry does not affect the others. */
export function readable<T>(
  entries: readonly Json[],
  parse: (entry: unknown) => T,
  onSkipped: OnSkipped,
): T[] {
  const read: T[] = []
  for (const entry of entries) {
    try {
      read.push(parse(entry))
    } catch (error) {
      if (!(error instanceof Malformed)) throw error
      onSkipped(error)
    }
  }
  return read
}

export function objectIn(value: unknown, what: string): JsonObject {
  if (!isObject(value)) throw new Malformed(`${what} is not an object`)
  return value
}

export function text(raw: JsonObject, key: string, what: string): string {
  const value = stringOf(raw[key])
  if (value === null) throw new Malformed(`${what} has no ${key}`)
  return value
}

/** A text that the store has in an index. */
function id(raw: JsonObject, key: string, what: string): string {
  const value = text(raw, key, what)
  if (!isShort(value)) throw new Malformed(`the ${key} of ${what} is longer than ${ID_BYTES} bytes`)
  return value
}

function optionalId(raw: JsonObject, key: string, what: string): string | null {
  return stringOf(raw[key]) === null ? null : id(raw, key, what)
}

function time(raw: JsonObject, key: string, what: string): number {
  const value = timeOf(raw[key])
  if (value === null) throw new Malformed(`${what} has no time ${key}`)
  return value
}

/** The latest time that a `Date` can have, milliseconds; its negative is the earliest. */
const LATEST = 8.64e15

/**
 * Whole milliseconds in the range of dates: a service may send fractions, or a huge number for
 * "never". null for an invalid time.
 */
function timeOf(value: unknown): number | null {
  const ms = Math.floor(numberOf(value) ?? Number.NaN)
  return Number.isSafeInteger(ms) ? Math.max(-LATEST, Math.min(ms, LATEST)) : null
}

/** Values that are not strings are against the interface; they stay in `raw` only. */
function stringsOf(value: unknown): Record<string, string> {
  if (!isObject(value)) return {}
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

/** Parse a resource from the store: null when it is malformed. */
export const parseSession = (value: unknown): Session | null =>
  quietly(() => readSession(value, () => undefined))
export const parseAction = (value: unknown): Action | null => quietly(() => readAction(value))
export const parseTurn = (value: unknown, sessionId = ''): Turn | null =>
  quietly(() => readTurn(value, sessionId))

function quietly<T>(read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof Malformed) return null
    throw error
  }
}
