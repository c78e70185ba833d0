// Prints the sidecar's spans: reads, callbacks, tool runs and answers, one trace per session.
import { trace } from '@opentelemetry/api'
import { BasicTracerProvider, SimpleSpanProcessor, type SpanExporter } from '@opentelemetry/sdk-trace-base'
import { createSidecar, tool } from 'agent-session-sidecar'

const printer: SpanExporter = {
  export(spans, done) {
    for (const { name, attributes } of spans)
      console.log('span', name, attributes['session_sidecar.tool'] ?? '-')
    done({ code: 0 })
  },
  async shutdown() {},
}
// Set up the SDK before the sidecar starts.
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(printer)] }))

const sidecar = await createSidecar({
  config: {
    service: { base_url: 'http://127.0.0.1:4010', token: 'svc_pat_dev' },
    store: { url: 'sqlite:sidecar.db' },
    admin: { listen: '127.0.0.1:8481' },
    log: { level: 'warn' },
  },
})
sidecar.on('turn.settled', () => undefined)
sidecar.tool(
  tool({
    name: 'lookup_order',
    description: 'Finds an order by its id',
    input: { type: 'object' },
    run: () => ({ state: 'shipped' }),
  }),
)

await sidecar.start()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void sidecar.stop())
