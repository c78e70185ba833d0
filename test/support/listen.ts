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

/** Below the ports that systems give when any will do (32768 on Linux, 49152 elsewhere). */
const FIRST = 20_000
const EACH = 1000
const POOLS = 11
/** The torture test closes ports, to refuse connections, and opens them again: nothing else may have taken one meanwhile. */
const TORTURE = 11
let pool = Number(process.env['VITEST_POOL_ID'] ?? '0') % POOLS
let next = 0

/** Takes the ports of this process from a range that neither tests nor benchmarks use. */
export function useTorturePorts(): void {
  pool = TORTURE
}

/**
 * A port that must be known before its listener opens. The system could assign a free one again meanwhile, so these are of
 * ranges that it never gives. Each process of the test runner has one, by its number from 1 on, and all else has another.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + pool * EACH + ((process.pid + next++) % EACH)
    try {
      const held = await listen((_request, response) => response.end(), port)
      await held[Symbol.asyncDispose]()
      return port
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error
    }
  }
}
