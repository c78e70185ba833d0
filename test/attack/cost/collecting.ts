import { createServer } from 'node:http'

/** A server with the bug that the measure of memory must catch: it keeps every chunk of a body until the last one. */
const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => response.end(String(Buffer.concat(chunks).length)))
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.(typeof address === 'object' ? address?.port : null)
})
