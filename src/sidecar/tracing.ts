import type { SpanContext } from '@opentelemetry/api'
import { isObject } from '../std/json.ts'
import type { Random } from '../std/ports.ts'
import { plainTracer, traceContext, traceparentOf, type Tracer } from '../core/trace.ts'
import { VERSION } from './version.ts'

const NAME = 'agent-session-sidecar'

type Api = typeof import('@opentelemetry/api')

/** The library's mark in the global object, since a program registered an SDK with it. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')

/**
 * Our spans go to the OpenTelemetry SDK of the program that we are part of, if it has one. Without one the library is not
 * loaded, though it be installed: a start is shorter by it. An SDK that is registered later gets the spans from then on.
 */
export async function loadTracer(random: Random): Promise<Tracer> {
  const plain = plainTracer(random)
  if (REGISTERED in globalThis) return await sdkTracer(plain)
  let tracer = plain
  let loading = false
  return {
    start(name, source, attributes, since) {
      if (!loading && REGISTERED in globalThis) {
        loading = true
        void sdkTracer(plain).then((loaded) => (tracer = loaded))
      }
      return tracer.start(name, source, attributes, since)
    },
  }
}

async function sdkTracer(plain: Tracer): Promise<Tracer> {
  try {
    return throughSdk(await import('@opentelemetry/api'), plain)
  } catch (error) {
    if (isObject(error) && error['code'] === 'ERR_MODULE_NOT_FOUND') return plain
    throw error
  }
}

function throughSdk(api: Api, plain: Tracer): Tracer {
  // It finds the SDK that is set up later, too.
  const tracer = api.trace.getTracer(NAME, VERSION)
  let found = false
  /** A span that nobody records would cost each callback 3 µs. */
  const hasSdk = (): boolean => {
    if (found) return true
    const provider = api.trace.getTracerProvider()
    found = !(provider instanceof api.ProxyTracerProvider && provider.getDelegateTracer(NAME) === undefined)
    return found
  }
  return {
    start(name, source, attributes, since) {
      if (!hasSdk()) return plain.start(name, source, attributes)
      const { traceId, spanId, flags } = traceContext(source)
      const parent: SpanContext = { traceId, spanId, traceFlags: parseInt(flags, 16), isRemote: true }
      const span = tracer.startSpan(
        name,
        {
          kind: name === 'reading' ? api.SpanKind.INTERNAL : api.SpanKind.CLIENT,
          attributes: attributes(),
          ...(since === undefined ? {} : { startTime: since }),
        },
        api.trace.setSpanContext(api.ROOT_CONTEXT, parent),
      )
      const own = span.spanContext()
      // The parent comes back from an SDK that was switched off.
      if (own.spanId === spanId) return plain.start(name, source, attributes)
      const context = api.trace.setSpan(api.ROOT_CONTEXT, span)
      return {
        traceparent: traceparentOf({
          traceId: own.traceId,
          spanId: own.spanId,
          flags: own.traceFlags.toString(16).padStart(2, '0'),
        }),
        run: (work) => api.context.with(context, work),
        end(fault) {
          if (fault !== null) span.setStatus({ code: api.SpanStatusCode.ERROR, message: fault })
          span.end()
        },
      }
    },
  }
}
