import { connect, type Socket } from 'node:net'
import { createParser } from 'eventsource-parser'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { now } from '../clock.ts'
import { serve } from './serve.ts'

/** Many readers of one event stream. The first parses what it gets; the others count bytes, which must be as many. */

const Read = Type.Object({ url: Type.String(), readers: Type.Integer(), frames: Type.Integer() })

interface Reader {
  socket: Socket
  /** Bytes after the opening. */
  bytes: number
  lastAt: number
}

let readers: Reader[] = []
let parsed: Promise<number> = Promise.resolve(0)

serve({
  /** Answers once every reader's stream is open. */
  async read(argument) {
    const { url, readers: count, frames } = Value.Parse(Read, argument)
    readers = await Promise.all(Array.from({ length: count }, () => open(new URL(url))))
    const [first] = readers
    if (first !== undefined) parsed = parse(first.socket, frames)
    parsed.catch(() => undefined)
  },
  /** When the last reader had everything. */
  async done() {
    const bytes = await parsed
    const slow = readers.filter((reader) => reader.bytes < bytes)
    await Promise.all(slow.map((reader) => whole(reader, bytes)))
    for (const { socket } of readers) socket.destroy()
    return Math.max(...readers.map(({ lastAt }) => lastAt))
  },
})

function open({ hostname, port, pathname }: URL): Promise<Reader> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    const reader: Reader = { socket, bytes: 0, lastAt: 0 }
    socket.once('error', reject)
    socket.write(`GET ${pathname} HTTP/1.1\r\nhost: ${hostname}:${port}\r\n\r\n`)
    let head = ''
    const opening = (chunk: Buffer): void => {
      head += chunk.toString('latin1')
      if (!/^retry: .*\n\n/m.test(head)) return
      if (!head.startsWith('HTTP/1.1 200 ')) return reject(new Error(head.split('\r\n')[0]))
      socket.off('data', opening)
      socket.on('data', (bytes: Buffer) => {
        reader.bytes += bytes.length
        reader.lastAt = now()
      })
      resolve(reader)
    }
    socket.on('data', opening)
  })
}

/** @returns the bytes that `frames` frames with ascending seqs took. */
function parse(socket: Socket, frames: number): Promise<number> {
  return new Promise((resolve, reject) => {
    let bytes = 0
    let count = 0
    const parser = createParser({
      onEvent({ id }) {
        if (id !== String(++count)) reject(new Error(`frame ${id} came in place of ${count}`))
      },
    })
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      parser.feed(chunk.toString('utf8'))
      if (count === frames) resolve(bytes)
    })
    socket.once('close', () => reject(new Error(`the first reader was left after ${count} frames`)))
  })
}

function whole(reader: Reader, bytes: number): Promise<void> {
  return new Promise((resolve, reject) => {
    reader.socket.on('data', () => {
      if (reader.bytes >= bytes) resolve()
    })
    reader.socket.once('close', () =>
      reject(new Error(`a reader was left after ${reader.bytes} of ${bytes} bytes`)),
    )
    if (reader.bytes >= bytes) resolve()
  })
}
