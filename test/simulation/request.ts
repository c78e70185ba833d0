import type { CallbackEvent } from '../../src/core/handler.ts'
import type { HttpRequest, HttpStreamRequest } from '../../src/std/ports.ts'

/** Several look into each request: it is read once. */
const texts = new WeakMap<object, string>()
const read = new WeakMap<HttpRequest, readonly CallbackEvent[]>()

export function textOf(request: HttpRequest | HttpStreamRequest): string {
  let text = texts.get(request)
  if (text === undefined) {
    text = 'body' in request ? (request.body?.toString() ?? '') : ''
    texts.set(request, text)
  }
  return text
}

/** The events of one callback, whatever its format. */
export function eventsOf(request: HttpRequest): readonly CallbackEvent[] {
  let events = read.get(request)
  if (events === undefined) {
    events = eventsIn(JSON.parse(textOf(request)))
    read.set(request, events)
  }
  return events
}

function eventsIn(value: unknown): CallbackEvent[] {
  return (Array.isArray(value) ? value : [value]).map((event: Record<string, unknown>) =>
    'specversion' in event
      ? ({
          ...(event['data'] as object),
          id: event['id'],
          type: event['type'],
          timestamp: event['time'],
        } as CallbackEvent)
      : (event as unknown as CallbackEvent),
  )
}
