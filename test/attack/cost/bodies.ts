import { createServer } from 'node:http'
import { BodyReader, DirectRequest } from '../../../src/sidecar/admin/listener.ts'
import { startEmulator } from '../../../src/emulator/index.ts'
import { CHUNKINGS, sendBody, type Chunking } from './sender.ts'

/** What a peer sends as the body of a request: nanoseconds and bytes of memory that a byte of it may cost. */
export const BODY_READERS = CHUNKINGS.flatMap((chunking) => {
  const { name, bound } = chunking
  return [
    // The sender runs on the same event loop: its own cost is in the measure.
    {
      name: `a webhook or admin body in ${name}`,
      bound: bound * 10,
      memory: 160,
      read: (bytes: number) => readBody(bytes, chunking),
    },
    {
      name: `a body of the emulator in ${name}`,
      bound: bound * 10,
      memory: 160,
      read: (bytes: number) => readEmulatorBody(bytes, chunking),
    },
  ]
})

/** Both listeners read with one reader. */
async function readBody(bytes: number, chunking: Chunking): Promise<number> {
  const reader = new BodyReader(64 * 1024 * 1024)
  const server = createServer({ IncomingMessage: DirectRequest }, (request, response) => {
    reader.read(request, 64 * 1024 * 1024, (error, body) => {
      if (error === null) response.end(String(body?.length))
      else response.writeHead(error.statusCode, { connection: 'close' }).end()
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  try {
    const address = server.address()
    return await send(typeof address === 'object' ? (address?.port ?? 0) : 0, '/', { bytes, chunking })
  } finally {
    server.close()
  }
}

async function readEmulatorBody(bytes: number, chunking: Chunking): Promise<number> {
  const emulator = await startEmulator({ openDetails: 'a' })
  try {
    return await send(Number(new URL(emulator.baseUrl).port), '/_emulator/tokens', { bytes, chunking })
  } finally {
    await emulator.close()
  }
}

function send(
  port: number,
  path: string,
  { bytes, chunking }: { bytes: number; chunking: Chunking },
): Promise<number> {
  const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${chunking.headers(bytes)}\r\n`
  return sendBody(port, head, chunking.pieces(bytes), chunking)
}
