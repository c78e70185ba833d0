import { createServer } from 'node:http'
import { NetworkFault } from '../../../src/std/errors.ts'
import { parseJson } from '../../../src/std/json.ts'
import type { Random } from '../../../src/std/ports.ts'
import { drainChunks } from '../../source/draining.ts'
import { readFrame } from '../../../src/sidecar/intake/frame.ts'
import { createHttp } from '../../../src/system/http.ts'
import { VirtualClock } from '../../support/clock.ts'
import { ANSWER_READERS } from './answers.ts'
import { BODY_READERS } from './bodies.ts'
import { peakOf } from './usage.ts'
import { FRAMES } from '../frames.ts'
import { pick } from '../mutate.ts'
import { Tally } from '../tally.ts'

/** What peers send to us in answers and streams: how many bytes of them are read, and what each may cost. */
export interface Reader {
  name: string
  /** Nanoseconds of processor time of the event loop's thread for each byte. */
  bound: number
  /** Bytes by which the peak of resident memory may rise for each byte; absent where nothing accumulates. */
  memory?: number
  /** @returns the bytes that were read. */
  read: (bytes: number, random: Random) => Promise<number>
}

/** Bytes of memory that are not counted: the garbage of one run. */
const SLACK = 16 * 1024 * 1024

const HTTP = { method: 'GET' as const, headers: {}, timeout: 60_000 }

/** An answer in pieces of `size` bytes, each a chunk. */
async function readAnswer(bytes: number, size: number): Promise<number> {
  const http = createHttp()
  const frame = `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`
  const whole = Buffer.from(frame.repeat(Math.ceil(bytes / size)))
  const server = createServer((request) => {
    request.socket.end(
      Buffer.concat([
        Buffer.from('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n'),
        whole,
        Buffer.from('0\r\n\r\n'),
      ]),
    )
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  try {
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : 0
    const reply = await http.exchange({
      ...HTTP,
      url: `http://127.0.0.1:${port}/`,
      maxBody: 64 * 1024 * 1024,
    })
    if (reply.body.length < bytes) throw new Error(`${reply.body.length} of ${bytes} bytes were read`)
    return whole.length
  } finally {
    await http.close()
    server.close()
  }
}

async function readStream(bytes: number, size: number, random: Random): Promise<number> {
  let text = ''
  while (text.length < bytes)
    text += pick(
      random,
      FRAMES.filter((frame) => !frame.includes('replay.stopped')),
    )
  const whole = Buffer.from(text)
  try {
    await drainChunks({
      chunks: (async function* () {
        for (let at = 0; at < whole.length; at += size) yield whole.subarray(at, at + size)
      })(),
      connection: new AbortController(),
      accept: (frame) => (readFrame(frame, 1).kind === 'stop' ? 'stop' : null),
      commit: async () => undefined,
      clock: new VirtualClock(),
    })
  } catch (error) {
    if (!(error instanceof NetworkFault)) throw error
  }
  return whole.length
}

function readJson(text: string): number {
  parseJson(text)
  return text.length
}

/** The bounds are some times what is measured, so that a cold start passes and a reader that costs thirty times does not. */
export const READERS: readonly Reader[] = [
  ...[16_384, 100, 1].map((size) => ({
    name: `an answer in chunks of ${size}`,
    bound: 400,
    read: (bytes: number) => readAnswer(bytes, size),
  })),
  ...[16_384, 100, 1].map((size) => ({
    name: `frames in pieces of ${size}`,
    bound: size === 1 ? 4000 : 400,
    read: (bytes: number, random: Random) => readStream(bytes, size, random),
  })),
  ...(
    [
      ['zeros', (bytes) => `[${'0,'.repeat(bytes / 2)}0]`],
      ['zeros and one long number', (bytes) => `[${'0,'.repeat(bytes / 2)}12345678901234567890]`],
      ['objects', (bytes) => `[${'{"a":0},'.repeat(bytes / 8)}12345678901234567890]`],
      ['long numbers', (bytes) => `[${'12345678901234567890,'.repeat(bytes / 21)}0]`],
    ] satisfies [string, (bytes: number) => string][]
  ).map(([name, make]) => ({
    name: `JSON of ${name}`,
    bound: 300,
    read: async (bytes: number) => readJson(make(bytes)),
  })),
  ...ANSWER_READERS,
  ...BODY_READERS,
]

/**
 * Measures what a byte of a peer costs the event loop, by reader and by how it is cut. `count`: KiB that each reads.
 * @throws when one costs more than its bound.
 */
export async function attackCosts(count: number, random: Random): Promise<Tally> {
  const tally = new Tally()
  for (const { name, bound, memory, read } of READERS) {
    const peak = memory === undefined ? null : await peakOf(process.pid)
    const before = process.threadCpuUsage()
    const bytes = await read(count * 1024, random)
    const { user, system } = process.threadCpuUsage(before)
    const cost = Math.round(((user + system) * 1000) / bytes)
    if (cost > bound)
      throw new Error(`${name}: a byte costs ${cost} ns of the event loop, and at most ${bound}`)
    tally.note(`ns for a byte of ${name}`, cost)
    if (peak === null || memory === undefined) continue
    // A reader that keeps what it reads costs some hundred bytes for each; the process itself takes some MiB at any time.
    const held = Math.round(Math.max(0, (await peak()) - SLACK) / (count * 1024))
    if (held > memory) throw new Error(`${name}: a byte costs ${held} bytes of memory, and at most ${memory}`)
    tally.note(`bytes of memory for a byte of ${name}`, held)
  }
  return tally
}
