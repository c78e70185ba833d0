import { hash } from 'node:crypto'
import { NetworkFault, messageOf } from '../core/errors.ts'
import type { HandlerSpec } from '../core/handler.ts'
import type { Clock, Http } from '../core/ports.ts'
import { keyRing, signedHeaders } from '../core/signature.ts'
import type { Tracer } from '../core/trace.ts'
import { callbackText, cloudEventText, dataText } from './body.ts'
import type { Outgoing, Target } from './target.ts'
import { attributesOf, traceOf } from './trace.ts'
import { transientSlots } from './transients.ts'
import { faultOf, readAnswer, type Verdict } from './verdict.ts'

/** A handler's answer is a verdict at most; the rest of a longer one is not read, bytes. */
const ANSWER_READ = 64 * 1024

/** Callbacks over HTTP, following Standard Webhooks (product.md, Callbacks). */
export function createHttpTarget(
  handler: HandlerSpec,
  target: { url: string; secrets: readonly string[] },
  ports: { http: Http; clock: Clock; tracer: Tracer },
  source: string,
): Target {
  const { http, clock, tracer } = ports
  const keys = keyRing(target.secrets)
  const cloudevents = handler.format === 'cloudevents'
  const batched = handler.batch.max > 1
  const contentType = cloudevents
    ? `application/cloudevents${batched ? '-batch' : ''}+json; charset=utf-8`
    : 'application/json'

  const textOf = ({ fact, attempt, session, test = false }: Outgoing): string => {
    const data = dataText(fact, session)
    const delivery = { attempt, handler: handler.name, test }
    return cloudevents ? cloudEventText(fact, data, delivery, source) : callbackText(fact, data, delivery)
  }

  const headersFor = (id: string, body: Buffer, traceparent: string): Record<string, string> => {
    const headers = signedHeaders(keys(), id, clock.now(), body)
    headers['content-type'] = contentType
    headers['traceparent'] = traceparent
    return headers
  }

  // A fact never waits for the connection of a transient event.
  const pool = { size: handler.concurrency + transientSlots(handler.concurrency) }
  const underWay = new Set<AbortController>()
  let heard: AbortSignal | null = null

  /** One listener for all callbacks: each of its own would cost a burst a fifth of its pace. */
  const endWith = (signal: AbortSignal): void => {
    if (heard === signal) return
    heard = signal
    signal.addEventListener('abort', () => underWay.forEach((own) => own.abort()), { once: true })
  }

  const post = async (
    headers: Record<string, string>,
    body: Buffer,
    signal: AbortSignal,
  ): Promise<Verdict> => {
    const own = new AbortController()
    endWith(signal)
    underWay.add(own)
    if (signal.aborted) own.abort()
    try {
      const reply = await http.exchange({
        method: 'POST',
        url: target.url,
        headers,
        body,
        timeout: handler.timeout,
        maxBody: ANSWER_READ,
        pool,
        signal: own.signal,
      })
      return readAnswer(reply, clock.now())
    } catch (error) {
      return readFault(error)
    } finally {
      underWay.delete(own)
    }
  }

  return {
    batches: batched,
    async send(batch, signal): Promise<Verdict> {
      const [first] = batch
      if (first === undefined) return { kind: 'delivered', status: 204 }
      // Encoded once, for the signature and for the wire.
      const body = Buffer.from(batched ? `[${batch.map(textOf).join(',')}]` : textOf(first))
      const id = batched ? batchId(batch) : first.fact.id
      const source = traceOf(first.fact, first.session)
      const span = tracer.start('callback', source, attributesOf(handler.name, first))
      const verdict = await span.run(() => post(headersFor(id, body, span.traceparent), body, signal))
      span.end(faultOf(verdict))
      return verdict
    },
  }
}

function readFault(error: unknown): Verdict {
  if (!(error instanceof NetworkFault)) return { kind: 'retry', error: messageOf(error), floor: 0 }
  if (error.kind === 'aborted') return { kind: 'aborted' }
  if (error.kind === 'unreachable') return { kind: 'unreachable', error: error.message, reset: false }
  if (error.kind === 'reset') return { kind: 'unreachable', error: error.message, reset: true }
  // A handler that sends 20 KiB of headers answered: the attempt failed, and its policy ends it.
  return { kind: 'retry', error: error.message, floor: 0 }
}

/** The same facts in the same order are the same batch. */
function batchId(batch: readonly Outgoing[]): string {
  return `bat_${hash('sha256', batch.map(({ fact }) => fact.id).join('\n'), 'base64url').slice(0, 26)}`
}
