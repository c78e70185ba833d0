import { hash } from 'node:crypto'
import { NetworkFault } from '../../../std/errors.ts'
import type { HandlerSpec } from '../../../core/handler.ts'
import type { Clock, Http, HttpAttempt, HttpReply } from '../../../std/ports.ts'
import type { Secrets } from '../../../std/signature.ts'
import { Signer } from '../../../std/signature.ts'
import { traceOf, type Span, type Tracer } from '../../../core/trace.ts'
import { transientSlots } from '../transients.ts'
import { callbackText, cloudEventText, dataText } from './body.ts'
import { attributesOf, type Outgoing, type Target } from './target.ts'
import { faultOf, readAnswer, type Verdict } from './verdict.ts'

/** Bytes of an answer that are read: a verdict is short, and the rest of a longer answer is discarded. */
const ANSWER_READ = 64 * 1024

/** Callbacks over HTTP, following Standard Webhooks. */
export function createHttpTarget(
  handler: HandlerSpec,
  target: { url: string; secrets: Secrets },
  ports: { http: Http; clock: Clock; tracer: Tracer },
  source: string,
): Target {
  const { http, clock, tracer } = ports
  const signer = new Signer(target.secrets)
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

  /** The text is built once: joining its parts would copy it again. */
  const textOfAll = (batch: readonly Outgoing[]): string => {
    let text = ''
    for (const one of batch) text += `${text === '' ? '[' : ','}${textOf(one)}`
    return `${text}]`
  }

  // Transient events have connections of their own in the pool, so that no fact waits for one.
  const pool = { size: handler.concurrency + transientSlots(handler.concurrency) }
  const all: Place[] = []
  const free: Place[] = []
  let aborted = false

  const settle = (place: Place, outcome: HttpReply | NetworkFault): void => {
    const { span, ended } = place
    place.attempt = null
    free.push(place)
    const verdict = outcome instanceof NetworkFault ? readFault(outcome) : readAnswer(outcome, clock.now())
    span.end(faultOf(verdict))
    ended(verdict)
  }

  const place = (span: Span, ended: (verdict: Verdict) => void): Place => {
    const last = free.pop()
    if (last !== undefined) {
      last.span = span
      last.ended = ended
      return last
    }
    const added: Place = { span, ended, attempt: null, settled: (outcome) => settle(added, outcome) }
    all.push(added)
    return added
  }

  return {
    batches: batched,
    send(batch, ended) {
      const [first] = batch
      if (first === undefined) throw new RangeError('an attempt without a fact')
      if (aborted) return queueMicrotask(() => ended({ kind: 'aborted' }))
      const text = batched ? textOfAll(batch) : textOf(first)
      const id = batched ? batchId(batch) : first.fact.id
      const span = tracer.start('callback', traceOf(first.fact, first.session), () =>
        attributesOf(handler.name, first),
      )
      // Encoded once, for the signature and for the wire.
      const { headers, body } = signer.sign(id, clock.now(), text)
      headers['content-type'] = contentType
      headers['traceparent'] = span.traceparent
      const request = {
        method: 'POST',
        url: target.url,
        headers,
        body,
        timeout: handler.timeout,
        maxBody: ANSWER_READ,
        pool,
      } as const
      const taken = place(span, ended)
      taken.attempt = span.run(() => http.send(request, taken.settled))
    },
    abort() {
      aborted = true
      for (const { attempt } of all) attempt?.abort()
    },
  }
}

/**
 * The state of one callback under way, in an object that is used again. A set in which entries come and go leaves old
 * tables behind, by which V8 kept a quarter of all callbacks in memory.
 */
interface Place {
  span: Span
  ended: (verdict: Verdict) => void
  /** null: no callback uses the object. */
  attempt: HttpAttempt | null
  readonly settled: (outcome: HttpReply | NetworkFault) => void
}

function readFault(fault: NetworkFault): Verdict {
  if (fault.kind === 'aborted') return { kind: 'aborted' }
  if (fault.kind === 'unreachable') return { kind: 'unreachable', error: fault.message, reset: false }
  if (fault.kind === 'reset') return { kind: 'unreachable', error: fault.message, reset: true }
  // A handler that sends 20 KiB of headers has answered: the attempt failed, and the retry policy applies.
  return { kind: 'retry', error: fault.message, floor: 0 }
}

/** A batch that is repeated, with the same facts in the same order, has the same id. */
function batchId(batch: readonly Outgoing[]): string {
  return `bat_${hash('sha256', batch.map(({ fact }) => fact.id).join('\n'), 'base64url').slice(0, 26)}`
}
