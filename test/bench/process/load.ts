import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { Client, type Dispatcher } from 'undici'
import { signServiceWebhook } from '../../../src/std/signature.ts'
import { now } from '../clock.ts'
import { SESSIONS } from '../frames.ts'
import { serve } from './serve.ts'

/** Posts webhook deliveries, signed beforehand, over many connections, each sending its next when it was answered. */

const Prepare = Type.Object({ deliveries: Type.Integer(), secret: Type.String() })
const Fire = Type.Object({ url: Type.String(), connections: Type.Integer() })

interface Delivery {
  headers: Record<string, string>
  body: Buffer
}

let deliveries: Delivery[] = []

serve({
  prepare(argument) {
    const { deliveries: count, secret } = Value.Parse(Prepare, argument)
    deliveries = Array.from({ length: count }, (_, index) => delivery(index, secret))
    globalThis.gc?.()
  },
  async fire(argument) {
    const { url, connections } = Value.Parse(Fire, argument)
    const { origin, pathname } = new URL(url)
    const queue = deliveries.values()
    const clients = Array.from({ length: connections }, () => new Client(origin))
    const started = now()
    await Promise.all(clients.map((client) => post(client, pathname, queue)))
    const seconds = (now() - started) / 1000
    await Promise.all(clients.map((client) => client.destroy()))
    return deliveries.length / seconds
  },
})

function delivery(index: number, secret: string): Delivery {
  const at = Date.now()
  const timestamp = String(at)
  const session_id = SESSIONS[index % SESSIONS.length]
  const data = { session_id, turn_id: `turn_${index}` }
  const body = Buffer.from(
    JSON.stringify({ id: `evt_${index}`, object: 'event', type: 'turn.completed', created_at: at, data }),
  )
  const headers = {
    'content-type': 'application/json',
    'x-service-timestamp': timestamp,
    'x-service-signature': signServiceWebhook(secret, timestamp, body),
  }
  return { headers, body }
}

/** Hangs on undici's dispatch directly, so that the sender costs less than what it measures. */
function post(client: Client, path: string, queue: Iterator<Delivery>): Promise<void> {
  return new Promise((resolve, reject) => {
    const next = (): void => {
      const { value, done } = queue.next()
      if (done === true) return resolve()
      client.dispatch({ path, method: 'POST', ...value }, handler)
    }
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart: () => undefined,
      onResponseStart(_controller, status) {
        if (status !== 200) reject(new Error(`a delivery was answered ${status}`))
      },
      onResponseData: () => undefined,
      onResponseEnd: next,
      onResponseError: (_controller, error) => reject(error),
    }
    next()
  })
}
