import { once } from 'node:events'
import type { IncomingMessage, RequestOptions } from 'node:http'

/** Milliseconds for one request: counting a big backlog takes a while. */
export const TIMEOUT = 30_000
/** Bytes of an answer. A page of a hundred facts with long texts fits. */
const MAX_ANSWER = 64 * 1024 * 1024

/**
 * One request and its whole answer. Uses only Node: a package takes longer to load than a sidecar
 * to answer.
 * @throws {Error} with a `code` when there is no answer; `ABORT_ERR` past `TIMEOUT`.
 */
export async function exchange(
  url: string,
  { method, headers, body }: { method: 'GET' | 'POST'; headers: Record<string, string>; body?: string },
): Promise<{ status: number; text: string }> {
  // An `import` would read all that the module exports: node:http then loads fetch and WebSocket, which takes as long as the rest.
  const { request } = process.getBuiltinModule(url.startsWith('https:') ? 'node:https' : 'node:http')
  const options: RequestOptions = { method, headers, agent: false, signal: AbortSignal.timeout(TIMEOUT) }
  const asking = request(url, options)
  asking.end(body)
  const [answer] = (await once(asking, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > MAX_ANSWER) throw new Error(`it answered with more than ${MAX_ANSWER} bytes`)
    chunks.push(chunk)
  }
  return { status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }
}
