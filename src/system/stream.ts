import { NetworkFault } from '../std/errors.ts'
import type { HttpStream, HttpStreamRequest } from '../std/ports.ts'
import { AnswerParser } from './answer-parser.ts'
import { networkFault, type Stage } from './fault.ts'
import { connect, encode, placeOf, type SenderOptions } from './sender.ts'

/** The longest wait of Node's timers, milliseconds. */
const LONGEST = 2 ** 31 - 1

/**
 * Opens one GET with an endless answer. It has a connection of its own, which closes when the body ends, when the
 * reader stops reading, or with the signal. A slow reader slows the peer down: unread data is not received. `open`:
 * the functions that end open streams. @throws {NetworkFault}
 */
export async function openStream(
  { url, headers, timeout, signal }: HttpStreamRequest,
  { connectTimeout, maxHeaderSize }: SenderOptions,
  open: Set<(fault: NetworkFault) => void>,
): Promise<HttpStream> {
  if (signal.aborted) throw new NetworkFault('aborted', 'aborted by the caller')
  const { socket, bytes, secure } = begin(url, headers)
  // If the body breaks off, the fault is a reset connection, not an unreadable answer.
  let stage: Stage = 'connecting'
  let cut: NetworkFault | null = null
  const close = (fault: NetworkFault | null): void => {
    cut ??= fault
    clearTimeout(connecting)
    clearTimeout(answering)
    signal.removeEventListener('abort', onAbort)
    open.delete(close)
    socket.destroy()
  }
  const closeAfter = (ms: number, fault: NetworkFault): NodeJS.Timeout =>
    setTimeout(close, Math.min(ms, LONGEST), fault)
  const connecting = closeAfter(connectTimeout, new NetworkFault('unreachable', 'no connection in time'))
  const answering = closeAfter(timeout, new NetworkFault('timeout', 'no answer in time'))
  const onAbort = (): void => close(new NetworkFault('aborted', 'aborted by the caller'))
  signal.addEventListener('abort', onAbort)
  open.add(close)
  socket.once(secure ? 'secureConnect' : 'connect', () => {
    clearTimeout(connecting)
    stage = 'sent'
    socket.write(bytes)
  })

  const pieces: Buffer[] = []
  const parser = new AnswerParser(maxHeaderSize)
  parser.expectStream((piece) => pieces.push(piece))
  const received: AsyncIterator<Buffer, undefined> = socket[Symbol.asyncIterator]()
  /** Closes the connection on a failure. */
  const readOn = async (): Promise<void> => {
    try {
      const { done, value } = await received.next()
      if (done !== true) parser.read(value)
      else if (!parser.end()) throw new Error('other side closed')
    } catch (error) {
      const fault = cut ?? networkFault(error, stage)
      close(fault)
      throw fault
    }
  }

  while (!parser.headed) await readOn()
  clearTimeout(answering)
  const done = { done: true, value: undefined } as const
  // A generator that is never started skips its `finally`, and the connection would stay open.
  const reader: AsyncIterator<Uint8Array, undefined> = {
    async next() {
      while (pieces.length === 0 && !parser.complete) await readOn()
      const value = pieces.shift()
      if (value !== undefined) return { done: false, value }
      close(null)
      return done
    },
    async return() {
      close(null)
      return done
    },
  }
  const { status, headers: answered } = parser.reply
  return { status, headers: answered, chunks: { [Symbol.asyncIterator]: () => reader } }
}

function begin(url: string, headers: Record<string, string>) {
  try {
    const place = placeOf(url, 'keep-alive')
    const bytes = Buffer.from(encode({ method: 'GET', headers }, place))
    return { socket: connect(place.address), bytes, secure: place.address.secure }
  } catch (error) {
    throw networkFault(error, 'connecting')
  }
}
