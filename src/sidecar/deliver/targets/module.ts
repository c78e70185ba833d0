import { isDeadLetter } from '../../../core/errors.ts'
import { thrownName } from '../../../std/errors.ts'
import type { CallbackEvent, HandlerLog, HandlerSpec, ModuleHandler } from '../../../core/handler.ts'
import { isObject } from '../../../std/json.ts'
import type { Clock, Log } from '../../../std/ports.ts'
import { traceOf, type Tracer } from '../../../core/trace.ts'
import { callbackText, dataText } from './body.ts'
import { attributesOf, type Outgoing, type Target } from './target.ts'
import { faultOf, type Verdict } from './verdict.ts'

/** Handlers that run in this process: throwing means retry, throwing DeadLetter means dead. */
export function createModuleTarget(
  handler: HandlerSpec,
  handle: ModuleHandler,
  ports: { clock: Clock; log: Log; tracer: Tracer },
): Target {
  const log = handlerLog(ports.log.child({ handler: handler.name }))

  const callOne = async (outgoing: Outgoing, signal: AbortSignal): Promise<Verdict> => {
    const { fact, attempt, session, test = false } = outgoing
    try {
      const text = callbackText(fact, dataText(fact, session), { attempt, handler: handler.name, test })
      const answer: unknown = await handle(JSON.parse(text) as CallbackEvent, { attempt, signal, log })
      const verdict = isObject(answer) ? answer.verdict : undefined
      if (verdict === 'retry') return { kind: 'retry', error: 'verdict retry', floor: 0 }
      if (verdict === 'dead') return { kind: 'dead', error: 'verdict dead' }
      return { kind: 'delivered', status: 200 }
    } catch (error) {
      if (isDeadLetter(error)) return { kind: 'dead', error: error.message }
      return { kind: 'retry', error: thrownName(error), floor: 0 }
    }
  }

  const stopping = new AbortController()

  const attempt = async (outgoing: Outgoing): Promise<Verdict> => {
    const limit = timeLimit(ports.clock, handler.timeout, stopping.signal)
    const source = traceOf(outgoing.fact, outgoing.session)
    const span = ports.tracer.start('callback', source, () => attributesOf(handler.name, outgoing))
    try {
      const verdict = await Promise.race([span.run(() => callOne(outgoing, limit.signal)), limit.over])
      span.end(faultOf(verdict))
      return verdict
    } finally {
      limit.cancel()
    }
  }

  return {
    // The function is called with one event, and its outcome says nothing about the next event.
    batches: false,
    send([outgoing], ended) {
      if (outgoing === undefined) throw new RangeError('an attempt without a fact')
      void attempt(outgoing).then(ended)
    },
    abort: () => stopping.abort(),
  }
}

/** Aborts at the timeout and at a stop; a handler that ignores the signal is abandoned. */
function timeLimit(clock: Clock, ms: number, stopping: AbortSignal) {
  const controller = new AbortController()
  let give: (verdict: Verdict) => void = () => undefined
  const over = new Promise<Verdict>((resolve) => {
    give = resolve
  })
  const timer = clock.after(ms, () => {
    give({ kind: 'retry', error: `no answer within ${ms} ms`, floor: 0 })
    controller.abort()
  })
  const stop = (): void => {
    give({ kind: 'aborted' })
    controller.abort()
  }
  if (stopping.aborted) stop()
  stopping.addEventListener('abort', stop)
  return {
    signal: controller.signal,
    over,
    cancel: () => {
      timer.cancel()
      stopping.removeEventListener('abort', stop)
    },
  }
}

export function handlerLog(log: Log): HandlerLog {
  return {
    debug: (message, details = {}) => log.debug(details, message),
    info: (message, details = {}) => log.info(details, message),
    warn: (message, details = {}) => log.warn(details, message),
    error: (message, details = {}) => log.error(details, message),
  }
}
