import type { ServerResponse } from 'node:http'
import type { PacedReader } from './replay.ts'

/** A reader of the relay, to which frames are sent in an HTTP response. */
export function answerReader(
  response: ServerResponse,
  options: { sessionId: string | null; transient: boolean; onCut: (reason: string) => void },
): PacedReader {
  const { sessionId, transient, onCut } = options
  return {
    sessionId,
    transient,
    get closed() {
      return response.closed || response.destroyed || response.writableEnded
    },
    unread: () => response.writableLength,
    write: (bytes) => void response.write(bytes),
    drained() {
      if (!response.writableNeedDrain) return Promise.resolve()
      return new Promise((resolve) => {
        const done = (): void => {
          response.off('drain', done)
          response.off('close', done)
          resolve()
        }
        response.on('drain', done)
        response.on('close', done)
      })
    },
    end: () => void response.end(),
    cut(reason) {
      onCut(reason)
      response.destroy()
    },
  }
}
