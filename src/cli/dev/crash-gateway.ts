import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Emulator } from '../../emulator/index.ts'

/** The network between a sidecar and the service. It holds back the response to the first answer of a call. */
export interface Gateway extends AsyncDisposable {
  url: string
  firstAnswer: Promise<void>
}

export async function startGateway(emulator: Emulator): Promise<Gateway> {
  const first = Promise.withResolvers<void>()
  let held = false
  const answers = (): number => emulator.ledger(Number.MAX_SAFE_INTEGER).answers.length

  const pass = (from: IncomingMessage, to: ServerResponse): void => {
    const { method, headers, url = '' } = from
    const onward = request(emulator.baseUrl + url, { method, headers }, (response) => {
      if (!held && method === 'POST' && answers() > 0) {
        held = true
        first.resolve()
        return
      }
      to.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(to)
    })
    onward.on('error', () => to.destroy())
    to.on('close', () => onward.destroy())
    from.pipe(onward)
  }

  const server = createServer(pass)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    firstAnswer: first.promise,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      return await Promise.resolve()
    },
  }
}
