import type { Hint } from '../../core/hint.ts'
import type { Observer, WebhookOutcome } from '../../core/observer.ts'
import type { Clock, Log } from '../../std/ports.ts'
import { isServiceSignature, verifyServiceWebhook } from '../../std/signature.ts'

/** Deliveries of which we know that their hint is stored; a copy of one is answered without storing it again. */
const REMEMBERED = 10_000

export interface WebhookHead {
  signature: string | undefined
  timestamp: string | undefined
}

export interface WebhookDelivery extends WebhookHead {
  body: Buffer
}

export interface WebhookAnswer {
  status: 200 | 401 | 503
  outcome: WebhookOutcome
}

export interface WebhookReceiver {
  /** The answer to a delivery that its headers alone condemn, before a byte of the body is read; null for all others. */
  screen: (head: WebhookHead) => WebhookAnswer | null
  receive: (delivery: WebhookDelivery) => Promise<WebhookAnswer>
}

export interface WebhookOptions {
  /** Milliseconds that a timestamp may be off our clock. */
  tolerance: number
  /** Every secret that is valid now, the newest first. */
  secrets: () => readonly string[]
  readNotice: (body: unknown, at: number) => { hint: Hint; readable: boolean }
  storeHint: (hint: Hint) => Promise<void>
  observer: Observer
  clock: Clock
  log: Log
}

/**
 * Takes webhook deliveries: the raw bytes are verified before anything is parsed, and the answer is 2xx only once the
 * hint is durable (rules WHS-26 to WHS-31).
 */
export function createWebhookReceiver(options: WebhookOptions): WebhookReceiver {
  const { observer, clock, log } = options
  const seen = new Map<string, Promise<void>>()

  const answer = (status: WebhookAnswer['status'], outcome: WebhookOutcome): WebhookAnswer => {
    observer.webhook(outcome)
    return { status, outcome }
  }

  const remember = (key: string, stored: Promise<void>): void => {
    if (seen.size >= REMEMBERED) {
      const [oldest] = seen.keys()
      if (oldest !== undefined) seen.delete(oldest)
    }
    seen.set(key, stored)
  }

  const reject = ({ signature, timestamp }: WebhookHead): 'forged' | 'stale' | null => {
    if (signature === undefined || timestamp === undefined) return 'forged'
    if (!/^\d{1,16}$/.test(timestamp)) return 'stale'
    if (Math.abs(clock.now() - Number(timestamp)) > options.tolerance) return 'stale'
    return isServiceSignature(signature) ? null : 'forged'
  }

  const screen = (head: WebhookHead): WebhookAnswer | null => {
    const outcome = reject(head)
    return outcome === null ? null : answer(401, outcome)
  }

  const receive = async ({ signature, timestamp, body }: WebhookDelivery): Promise<WebhookAnswer> => {
    if (signature === undefined || timestamp === undefined) return answer(401, 'forged')
    const refusal = screen({ signature, timestamp })
    if (refusal !== null) return refusal
    if (!verifyServiceWebhook(options.secrets(), timestamp, body, signature)) return answer(401, 'forged')
    // The signature covers the timestamp and the body: the same one is the same delivery.
    const known = seen.get(signature)
    if (known !== undefined) {
      const stored = await known.then(
        () => true,
        () => false,
      )
      if (stored) return answer(200, 'duplicate')
    }
    const { hint, readable } = options.readNotice(parse(body), clock.now())
    const stored = options.storeHint(hint)
    remember(signature, stored)
    try {
      await stored
    } catch (error) {
      seen.delete(signature)
      log.error({ err: error }, 'webhook: the hint could not be stored; the service will send it again')
      return answer(503, 'store_failed')
    }
    if (!readable)
      log.warn({ bytes: body.length }, 'webhook: a genuine delivery cannot be read; sessions are swept')
    return answer(200, readable ? 'accepted' : 'unreadable')
  }

  return { screen, receive }
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown
  } catch {
    return null
  }
}
