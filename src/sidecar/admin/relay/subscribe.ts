import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { Problem } from '../problem.ts'
import type { Relay, Subscription } from './relay.ts'

const USUAL =
  /^\/v1\/(?:sessions\/([\w.~-]{1,512})\/)?events(?:\?(?:last_event_id=(\d{1,40})|transient=([01])))?$/

/** The subscription in a URL, if it is written as usual. null: the app, which is loaded on demand, reads or refuses it. */
export function usualSubscription(url: string): Subscription | null {
  const found = USUAL.exec(url)
  if (found === null) return null
  const [, sessionId = null, cursor = null, transient] = found
  return { sessionId, cursor, transient: transient !== '0' }
}

/**
 * Checks a subscription, of which `headers` may give the cursor.
 * @returns begins the stream in a response. @throws {Problem} when there is no stream or no room.
 */
export function subscribe(
  relay: Relay | null,
  subscription: Subscription,
  headers: IncomingHttpHeaders,
): (response: ServerResponse) => void {
  if (relay === null) throw new Problem('not_found', 'there is no stream to relay: stream.enabled is false')
  const cursor = cursorOf([headers['last-event-id']].flat()[0], subscription.cursor)
  relay.checkRoom()
  return (response) => {
    // A client that disconnected meanwhile would keep the slot of a reader.
    if (response.destroyed) return
    // The end of the connection ends the body: with chunks, each frame would need an encoding of its own for every
    // reader.
    response.removeHeader('transfer-encoding')
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    relay.open({ ...subscription, cursor }, response)
  }
}

/**
 * A client that reconnects requests the same URL again, with its first cursor. The header has a newer one, so it takes
 * precedence.
 */
function cursorOf(header: string | undefined, query: string | null): string | null {
  if (header !== undefined && header !== '' && !/^\d{1,40}$/.test(header)) {
    throw new Problem(
      'invalid_request',
      'Last-Event-ID: the seq of a frame is expected, or 0 for everything',
      {
        errors: [{ field: 'Last-Event-ID', detail: 'must be digits' }],
      },
    )
  }
  const given = header === undefined || header === '' ? query : header
  return given === null ? null : given.replace(/^0+(?=\d)/, '')
}
