import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Listening extends AsyncDisposable {
  readonly server: Server
  readonly port: number
  readonly url: string
}

/** An HTTP server on loopback; closing cuts whatever is still open. `port` 0: any. */
export async function listen(handle: RequestListener, port = 0): Promise<Listening> {
  const server = createServer(handle)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  const { port: given } = server.address() as AddressInfo
  return {
    server,
    port: given,
    url: `http://127.0.0.1:${given}`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeAllConnections()
      await closed
    },
  }
}

/** A port that was free a moment ago, for what must be known before anybody listens. */
export async function freePort(): Promise<number> {
  const held = await listen((_request, response) => response.end())
  await held[Symbol.asyncDispose]()
  return held.port
}
