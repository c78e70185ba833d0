import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import type { Fields } from './support.ts'

export interface Received {
  headers: IncomingHttpHeaders
  raw: string
  body: Fields
}

/** A webhook receiver on loopback that records its requests and sends the given answers. */
export interface Receiver {
  readonly url: string
  readonly received: Received[]
  /** The status of the next answers; null never answers. */
  answer: number | null
}

export async function receive(): Promise<Receiver> {
  const receiver = { url: '', received: [] as Received[], answer: 200 as number | null }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const raw = Buffer.concat(chunks).toString()
      receiver.received.push({ headers: request.headers, raw, body: JSON.parse(raw) as Fields })
      if (receiver.answer !== null)
        response.writeHead(receiver.answer, { location: 'http://127.0.0.1:1/' }).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  return receiver
}
