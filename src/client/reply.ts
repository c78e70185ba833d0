import type { JsonObject } from '../std/json.ts'
import { isObject, numberOf, stringOf } from '../std/json.ts'
import { flag, id, object } from './shape.ts'
import type { Open } from '../std/open.ts'
import type { Fields, Reader } from './shape.ts'

/** The interface shows these answers in part: the known fields are read, the others are passed on. */

export interface Receipt extends Fields {
  /** True when a turn runs and the message waits behind it. */
  queued: boolean
  /** Its position in the queue, from 1; null when it does not wait. */
  position: number | null
}

export const readReceipt: Reader<Receipt> = (value) => {
  const given = fieldsOf(value)
  const name = Object.keys(given).find((key) => /position/i.test(key))
  return {
    ...given,
    queued: given['queued'] === true,
    position: name === undefined ? null : numberOf(given[name]),
  }
}

export interface AnswerReceipt extends Fields {
  /**
   * `not_delivered`: the sandbox did not hold the call; a later attempt never helps. null: the
   * service did not report it.
   */
  outcome: Open<'not_delivered'> | null
}

/** The service accepted the answer: an empty reply to it must not look like a failure. */
export const readAnswerReceipt: Reader<AnswerReceipt> = (value) => {
  const given = fieldsOf(value)
  return { ...given, outcome: stringOf(given['outcome']) }
}

export interface Fork extends Fields {
  forked_from: string
  workspace_copied: boolean
  /** The new session; null if the reply does not name it. */
  session_id: string | null
}

const readStatedFork = object({ forked_from: id, workspace_copied: flag })

export const readFork: Reader<Fork> = (value, what) => {
  const given = readStatedFork(value, what)
  return { ...given, session_id: stringOf(given['session_id']) ?? stringOf(given['id']) }
}

export interface Publication extends Fields {
  /** null when nothing is published. */
  published_url: string | null
}

export const readPublication: Reader<Publication> = (value) => {
  const given = fieldsOf(value)
  return { ...given, published_url: stringOf(given['published_url']) ?? stringOf(given['url']) }
}

function fieldsOf(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}
