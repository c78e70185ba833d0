import type { SpanContext, Tracer as ApiTracer } from '@opentelemetry/api'
import { isObject } from '../std/json.ts'
import type { Random } from '../std/ports.ts'
import { plainTracer, traceContext, traceparentOf, type Tracer } from '../core/trace.ts'

const NAME = 'agent-session-sidecar'

type Api = typeof import('@opentelemetry/api')

/** The global symbol under which a program registers an OpenTelemetry SDK. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')

/**
 * Sends spans to the OpenTelemetry SDK of the host program, if it has one. Without one, the library is not loaded even
 * if it is installed, which makes the start faster. An SDK that is registered later gets the spans from then on.
 */
export async function loadTracer(random: Random, version: string): Promise<Tracer> {
  const plain = plainTracer(random)
  if (REGISTERED in globalThis) return await sdkTracer(plain, version)
  let tracer = plain
  let loading = false
  return {
    start(name, source, attributes, since) {
      if (!loading && REGISTERED in globalThis) {
        loading = true
        void sdkTracer(plain, version).then((loaded) => (tracer = loaded))
      }
      return tracer.start(name, source, attributes, since)
    },
  }
}

async function sdkTracer(plain: Tracer, version: string): Promise<Tracer> {
  try {
    const api = await import('@opentelemetry/api')
    return throughSdk(api, api.trace.getTracer(NAME, version), plain)
  } catch (error) {
    if (isObject(error) && error['code'] === 'ERR_MODULE_NOT_FOUND') return plain
    throw error
  }
}

/** `sdk`: also finds an SDK that is registered later. */
function throughSdk(api: Api, sdk: ApiTracer, plain: Tracer): Tracer {
  let found = false
  /** Without an SDK no span is started: one that is not recorded would cost each callback 3 µs. */
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
      const span = sdk.startSpan(
        name,
        {
          kind: name === 'reading' ? api.SpanKind.INTERNAL : api.SpanKind.CLIENT,
          attributes: attributes(),
          ...(since === undefined ? {} : { startTime: since }),
        },
        api.trace.setSpanContext(api.ROOT_CONTEXT, parent),
      )
      const own = span.spanContext()
      // An SDK that was switched off returns the parent context.
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
