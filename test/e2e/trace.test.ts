import { trace } from '@opentelemetry/api'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'
const CALL = 'call lookup_order {"order_id":"42"}'

const exporter = new InMemorySpanExporter()
trace.setGlobalTracerProvider(
  new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
)
afterEach(() => exporter.reset())
afterAll(() => trace.disable())

/** A session with one call, answered and settled. */
async function played(metadata: Record<string, string>): Promise<Rig> {
  const rig = await Rig.open({ tools: { lookup_order: {} } })
  const session = await rig.client.withTools({ lookup_order: null }, { metadata })
  await rig.client.send(session, CALL, 'say {{last}}')
  await rig.event('turn.settled')
  await until('readings', () => exporter.getFinishedSpans().some(({ name }) => name === 'reading'))
  return rig
}

function traceparents(rig: Rig): Record<'tool' | 'answer', string[]> {
  const answers = rig.gateway.passed.filter(({ headers }) => headers['traceparent'] !== undefined)
  return {
    tool: rig.app.runs.map(({ headers }) => String(headers['traceparent'])),
    answer: answers.map(({ headers }) => String(headers['traceparent'])),
  }
}

describe('with an SDK', () => {
  test("everything about a session is in the trace that its metadata names, below the session's own span", async () => {
    await using rig = await played({ traceparent: `00-${TRACE}-${PARENT}-01` })
    const spans = exporter.getFinishedSpans()
    expect(new Set(spans.map(({ name }) => name))).toEqual(new Set(['reading', 'callback', 'tool', 'answer']))
    for (const span of spans) {
      expect(span.spanContext().traceId).toBe(TRACE)
      expect(span.parentSpanContext?.spanId).toBe(PARENT)
    }
    const { tool, answer } = traceparents(rig)
    for (const [name, sent] of [
      ['tool', tool],
      ['answer', answer],
    ] as const) {
      const own = spans.filter((span) => span.name === name).map((span) => span.spanContext().spanId)
      expect(sent).toEqual(own.map((spanId) => `00-${TRACE}-${spanId}-01`))
      expect(sent).toHaveLength(1)
    }
  })

  test('a session without a traceparent has its own trace', async () => {
    await using rig = await played({})
    const traces = new Set(exporter.getFinishedSpans().map((span) => span.spanContext().traceId))
    expect(traces.size).toBe(1)
    expect(traceparents(rig).tool[0]).toContain([...traces][0])
  })
})
