import { connect } from 'node:net'

/** Sends bytes as they are and gives back what came until the peer closed. */
export async function exchangeRaw(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  // A peer that refuses early may reset what we still send.
  socket.on('error', () => undefined)
  socket.write(bytes)
  await new Promise<void>((resolve) => void socket.once('close', () => resolve()))
  return Buffer.concat(chunks).toString('latin1')
}
