import type { Hint } from '../../core/hint.ts'
import { isShort } from '../../core/id.ts'
import type { Observer, WebhookOutcome } from '../../core/observer.ts'
import { StoreError } from '../../core/store-error.ts'
import type { WebhookAnswer, WebhookDelivery, WebhookHead } from '../../core/webhook.ts'
import { BoundedMap } from '../../std/bounded-map.ts'
import { isObject, stringOf, type JsonObject } from '../../std/json.ts'
import type { Clock, Log } from '../../std/ports.ts'
import { isServiceSignature, verifyServiceWebhook, type Secrets } from '../../std/signature.ts'
import {
  UNKNOWN_WEBHOOK,
  WEBHOOK_IMPLICATIONS,
  WEBHOOK_WITHOUT_SESSION,
  type Implication,
} from '../../protocol/implications.ts'

/** The most deliveries that are remembered as stored; a copy of one is answered without storing it again. */
const REMEMBERED = 10_000
/** The most deliveries whose hints are stored by one write. */
const BATCH = 256
/** Levels of the envelope that are searched; ids are near the top. */
const DEPTH = 4
/** The longest that a read waits while the deliveries of its session keep coming, milliseconds. */
const LONGEST_DELAY = 1000
/** The most sessions whose run of deliveries is remembered (see `Runs`). */
const RUNS = 1000

const STORE_FAILED: WebhookAnswer = { status: 503, outcome: 'store_failed' }

export type Answer = (given: WebhookAnswer) => void

export interface WebhookReceiver {
  /** The answer to a delivery that is refused before a byte of its body is read; null for all others. */
  screen: (head: WebhookHead) => WebhookAnswer | null
  /** `answer` is called once. */
  receive: (delivery: WebhookDelivery, answer: Answer) => void
  /** The store is lost, and perhaps what was stored: each delivery from now on is answered 503, copies too. */
  lose: () => void
}

export interface WebhookOptions {
  /** Milliseconds that a timestamp may differ from our clock. */
  tolerance: number
  /** Every secret that is valid now, in lists: those of the configuration, and those of our subscriptions. */
  secrets: readonly Secrets[]
  /**
   * Reads the secrets again, because another process may have stored new ones. null: no read is made. false: the read
   * failed.
   */
  reload: () => Promise<boolean> | null
  /** Settles once all hints are durable. */
  storeHints: (hints: readonly Hint[]) => Promise<void>
  observer: Observer
  clock: Clock
  log: Log
}

/** A genuine delivery whose hint is not stored yet. */
interface Pending {
  signature: string
  hint: Hint
  readable: boolean
  answer: Answer
  /** The answers to further copies of the delivery. */
  copies: Answer[] | null
}

/**
 * Accepts webhook deliveries: the raw bytes are verified before anything is parsed, and the answer is 2xx only once the hint
 * is durable (rules WHS-26 to WHS-31). Deliveries that arrive together are stored by one write.
 */
export function createWebhookReceiver(options: WebhookOptions): WebhookReceiver {
  const { observer, clock, log } = options
  /** By signature, which covers the timestamp and the body: an equal signature means the same delivery. */
  const stored = new BoundedMap<string, true>(REMEMBERED)
  const pending = new Map<string, Pending>()
  const runs = new Runs(clock)
  let batch: Pending[] = []
  let isLost = false

  const answered = (status: WebhookAnswer['status'], outcome: WebhookOutcome): WebhookAnswer => {
    observer.webhook(outcome)
    return { status, outcome }
  }

  const reject = ({ signature, timestamp }: WebhookHead): 'forged' | 'stale' | null => {
    if (signature === undefined || timestamp === undefined) return 'forged'
    if (!/^\d{1,16}$/.test(timestamp)) return 'stale'
    if (Math.abs(clock.now() - Number(timestamp)) > options.tolerance) return 'stale'
    return isServiceSignature(signature) ? null : 'forged'
  }

  const screen = (head: WebhookHead): WebhookAnswer | null => {
    if (isLost) return answered(503, 'store_failed')
    const outcome = reject(head)
    return outcome === null ? null : answered(401, outcome)
  }

  /**
   * `before`: how many deliveries the batch had one turn of the event loop ago. While more arrive, the write waits for
   * them.
   */
  const collect = (before: number): void => {
    const { length } = batch
    if (length > before && length < BATCH) return clock.soon(() => collect(length))
    const complete = batch
    batch = []
    void store(complete)
  }

  const store = async (deliveries: readonly Pending[]): Promise<void> => {
    try {
      await options.storeHints(deliveries.map(({ hint }) => hint))
    } catch (error) {
      // One hint that cannot be written must not fail the others. If the store itself fails, all fail.
      if (deliveries.length > 1 && !(error instanceof StoreError)) {
        for (const delivery of deliveries) await store([delivery])
        return
      }
      log.error(
        { err: error, deliveries: deliveries.length },
        'webhook: hints could not be stored; the service will send them again',
      )
      for (const delivery of deliveries) settle(delivery, false)
      return
    }
    for (const delivery of deliveries) settle(delivery, true)
  }

  const settle = ({ signature, readable, answer, copies }: Pending, isStored: boolean): void => {
    pending.delete(signature)
    if (isStored) stored.set(signature, true)
    const outcome = readable ? 'accepted' : 'unreadable'
    reply(answer, isStored ? { status: 200, outcome } : STORE_FAILED)
    for (const answerCopy of copies ?? [])
      reply(answerCopy, isStored ? { status: 200, outcome: 'duplicate' } : STORE_FAILED)
  }

  /** An `answer` or observer that throws must not leave the rest of the batch unanswered. */
  const reply = (answer: Answer, given: WebhookAnswer): void => {
    try {
      answer(given)
      observer.webhook(given.outcome)
    } catch (error) {
      log.error(
        { err: error, outcome: given.outcome },
        'webhook: a delivery could not be answered or counted',
      )
    }
  }

  const receive = ({ signature, timestamp, body }: WebhookDelivery, answer: Answer): void => {
    const refusal = screen({ signature, timestamp })
    if (refusal !== null) return answer(refusal)
    if (signature === undefined || timestamp === undefined) return answer(answered(401, 'forged'))
    const isGenuine = (): boolean =>
      options.secrets.some(({ current }) => verifyServiceWebhook(current, timestamp, body, signature))
    if (isGenuine()) return take(body, signature, answer)
    const reloaded = options.reload()
    if (reloaded === null) return answer(answered(401, 'forged'))
    void reloaded.then((known) => {
      if (isGenuine()) take(body, signature, answer)
      // The database is unreachable, and the secret may be new: the service sends the delivery again after a 503.
      else reply(answer, known ? { status: 401, outcome: 'forged' } : STORE_FAILED)
    })
  }

  const take = (body: Buffer, signature: string, answer: Answer): void => {
    if (stored.get(signature) === true) return answer(answered(200, 'duplicate'))
    const first = pending.get(signature)
    if (first !== undefined) return void (first.copies ??= []).push(answer)
    const { hint, readable } = readWebhook(parse(body), clock.now())
    if (!readable)
      log.warn(
        { bytes: body.length },
        'webhook: a genuine delivery cannot be read; all sessions are checked instead',
      )
    hint.delay = runs.delayOf(hint)
    const delivery = { signature, hint, readable, answer, copies: null }
    pending.set(signature, delivery)
    if (batch.push(delivery) === 1) clock.soon(() => collect(0))
  }

  return {
    screen,
    receive,
    lose() {
      isLost = true
    },
  }
}

/**
 * If one session changes without end, each webhook requests a read within 100 ms, and the reads take the processor time
 * that answers need. While its deliveries come that fast, a read waits for as long as they have been coming.
 */
class Runs {
  readonly #clock: Pick<Clock, 'steady'>
  /** By session: its first and its last delivery, steady milliseconds. */
  readonly #runs = new BoundedMap<string, { first: number; last: number }>(RUNS)

  constructor(clock: Pick<Clock, 'steady'>) {
    this.#clock = clock
  }

  /**
   * Milliseconds that the read may wait. Where a webhook announces an action, the read keeps its delay: a tool may have
   * to run.
   */
  delayOf({ sessionId, delay, scope }: Hint): number {
    if (sessionId === null || scope === 'session') return delay
    const now = this.#clock.steady()
    const run = this.#runs.get(sessionId)
    if (run === undefined || now - run.last > delay) {
      this.#runs.set(sessionId, { first: now, last: now })
      return delay
    }
    run.last = now
    return Math.min(LONGEST_DELAY, Math.max(delay, now - run.first))
  }
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown
  } catch {
    return null
  }
}

/**
 * Reads the verified body of a webhook. The interface does not show the envelope, so the name of the event is any
 * string value that is a known name, and ids are found by their keys. An unreadable body causes a sweep: a verified
 * hint is never dropped.
 */
export function readWebhook(body: unknown, at: number): { hint: Hint; readable: boolean } {
  const hintOf = (sessionId: string | null, { scope, delay }: Implication): Hint => ({
    sessionId,
    channel: 'webhook',
    at,
    scope,
    delay,
  })
  if (!isObject(body)) return { hint: hintOf(null, WEBHOOK_WITHOUT_SESSION), readable: false }
  const found: Found = { name: null, session: null, turn: null }
  search(body, DEPTH, found)
  if (found.session === null || !isShort(found.session))
    return { hint: hintOf(null, WEBHOOK_WITHOUT_SESSION), readable: false }
  const implied = found.name === null ? undefined : WEBHOOK_IMPLICATIONS.get(found.name)
  const hint = hintOf(found.session, implied ?? UNKNOWN_WEBHOOK)
  if (implied?.subject !== undefined) {
    const key = implied.subject.startsWith('turn') ? found.turn : found.session
    if (key !== null && isShort(key)) hint.subject = `${implied.subject}/${key}`
  }
  return { hint, readable: implied !== undefined }
}

interface Found {
  name: string | null
  session: string | null
  turn: string | null
}

function search(holder: JsonObject, depth: number, found: Found): void {
  const named = stringOf(holder.object)
  if (named === 'session') found.session ??= stringOf(holder.id)
  if (named === 'turn') found.turn ??= stringOf(holder.id)
  for (const key of Object.keys(holder)) {
    const value = holder[key]
    if (typeof value === 'string') {
      if (stringOf(value) === null) continue
      if (WEBHOOK_IMPLICATIONS.has(value)) found.name ??= value
      else if (key === 'session_id' || key === 'sessionId' || key === 'session') found.session ??= value
      else if (key === 'turn_id' || key === 'turnId' || key === 'turn') found.turn ??= value
    } else if (isObject(value) && depth > 1) {
      if (key === 'session') found.session ??= stringOf(value.id)
      if (key === 'turn') found.turn ??= stringOf(value.id)
      search(value, depth - 1, found)
    }
  }
}
