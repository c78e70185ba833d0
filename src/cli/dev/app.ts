import { randomBytes } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import { isObject, stringOf, type JsonObject } from '../../std/json.ts'
import type { ConfigInput } from '../../sidecar/config/schema.ts'
import type { Received } from './compare.ts'
import { verifyCallback, verifyToolCall, type VerifyOptions } from '../../index.ts'

/**
 * An app as a user would write it: one endpoint that receives facts, two that answer function
 * calls.
 */
export interface ExampleApp {
  url: string
  /** The secret of the sidecar's signatures. */
  secret: string
  /** Every accepted callback, repeated deliveries included. */
  received: ReadonlyMap<string, Received>
  close(): Promise<void>
}

/**
 * Events kept for comparison; the oldest are dropped first, so that a long demonstration stays
 * small.
 */
const KEPT = 50_000

const ORDERS: Record<string, string> = { '42': 'shipped', '43': 'waiting for stock' }
const STOCK: Record<string, number> = { 'TEA-01': 12, 'TEA-02': 0 }

export async function startExampleApp(): Promise<ExampleApp> {
  const secret = `whsec_${randomBytes(24).toString('base64')}`
  const received = new Map<string, Received>()
  const app = fastify({ requestTimeout: 10_000, forceCloseConnections: true })
  // A signature covers the received bytes, so they are parsed after the check.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body))

  app.post('/agent-events', async (request, reply) => {
    const event = genuine(verifyCallback, request, secret)
    if (event === null) return await reply.code(401).send()
    // The same event may come twice with the same id.
    received.set(event.id, { event, times: (received.get(event.id)?.times ?? 0) + 1 })
    for (const oldest of received.keys()) {
      if (received.size <= KEPT) break
      received.delete(oldest)
    }
    return await reply.code(204).send()
  })

  tool('/tools/lookup_order', (args, reply) => {
    const id = stringOf(args['order_id']) ?? ''
    const state = Object.hasOwn(ORDERS, id) ? ORDERS[id] : undefined
    return reply.send({ order_id: id, state: state ?? 'unknown' })
  })

  tool('/tools/check_stock', (args, reply) => {
    const sku = stringOf(args['sku']) ?? ''
    const pieces = Object.hasOwn(STOCK, sku) ? STOCK[sku] : undefined
    // 422: these arguments will never be valid. The model gets the fixed error text of the
    // configuration.
    return pieces === undefined ? reply.code(422).send() : reply.send({ sku, in_stock: pieces })
  })

  function tool(path: string, answer: (args: JsonObject, reply: FastifyReply) => FastifyReply): void {
    app.post(path, async (request, reply) => {
      const call = genuine(verifyToolCall, request, secret)
      if (call === null) return await reply.code(401).send()
      return await answer(isObject(call.arguments) ? call.arguments : {}, reply)
    })
  }

  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, secret, received, close: () => app.close() }
}

/** One handler for everything, and the two tools. */
export function configOfExample({ url, secret }: ExampleApp): Pick<ConfigInput, 'handlers' | 'tools'> {
  const tool = (name: string, description: string, argument: string) => ({
    name,
    description,
    parameters: { type: 'object', properties: { [argument]: { type: 'string' } }, required: [argument] },
    url: `${url}/tools/${name}`,
    secret,
  })
  return {
    handlers: [{ name: 'app', url: `${url}/agent-events`, secret, events: ['*'] }],
    tools: [
      tool('lookup_order', 'Finds an order by its id', 'order_id'),
      tool('check_stock', 'Counts the stock of an article', 'sku'),
    ],
  }
}

/** What the sidecar signed; null for any other request. */
function genuine<T>(
  verify: (signed: VerifyOptions) => T,
  { headers, body }: FastifyRequest,
  secret: string,
): T | null {
  try {
    return verify({ headers, body: typeof body === 'string' ? body : '', secrets: [secret] })
  } catch {
    return null
  }
}
