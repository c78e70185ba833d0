import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { verifyCallback, verifyToolCall } from '../../index.ts'
import type { Event, ToolCallRequest } from '../../sidecar/library/events.ts'
import type { Received } from './compare.ts'

/** An app that makes refunds, and does not respond to the first run of its tool and the first `turn.settled`. */
export interface CrashApp extends AsyncDisposable {
  url: string
  runs: readonly ToolCallRequest[]
  /** What it has done, by idempotency key: its own database. */
  refunds: ReadonlyMap<string, string>
  /** Callbacks that it responded to, with how many requests each took. */
  accepted: ReadonlyMap<string, Received>
  firstRun: Promise<ToolCallRequest>
  firstSettled: Promise<Event>
}

export async function startCrashApp(secret: string, tool: string): Promise<CrashApp> {
  const runs: ToolCallRequest[] = []
  const refunds = new Map<string, string>()
  const requests = new Map<string, number>()
  const accepted = new Map<string, Received>()
  const firstRun = Promise.withResolvers<ToolCallRequest>()
  const firstSettled = Promise.withResolvers<Event>()

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = Buffer.concat(await request.toArray())
    const signed = { headers: request.headers, body, secrets: [secret] }
    if (request.url === `/tools/${tool}`) {
      const call = verifyToolCall(signed)
      runs.push(call)
      const known = refunds.get(call.call_id)
      refunds.set(call.call_id, known ?? JSON.stringify({ refund: `re_${refunds.size + 1}` }))
      if (runs.length === 1) firstRun.resolve(call)
      else response.end(refunds.get(call.call_id))
      return
    }
    const event = verifyCallback(signed)
    const times = (requests.get(event.id) ?? 0) + 1
    requests.set(event.id, times)
    if (event.type === 'turn.settled' && times === 1) return firstSettled.resolve(event)
    accepted.set(event.id, { event, times })
    response.writeHead(204).end()
  }

  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.writeHead(401).end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    runs,
    refunds,
    accepted,
    firstRun: firstRun.promise,
    firstSettled: firstSettled.promise,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      return await Promise.resolve()
    },
  }
}
