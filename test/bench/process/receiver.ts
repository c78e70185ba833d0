import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { listen } from '../../support/listen.ts'
import { now } from '../clock.ts'
import { serve } from './serve.ts'

/** The application: takes callbacks as cheaply as can be, counts them by the `seq` in their body, and runs a tool. */

/** Callbacks that come again do so within this time of the last one, milliseconds. */
const AFTERMATH = 300
const LOOK = 5

const Expected = Type.Object({ frames: Type.Integer(), first: Type.Integer() })
const Patience = Type.Object({ patience: Type.Number() })

/** Below the lowest seq that is expected. */
let below = 0
/** When the callback of each seq above it came first; 0: not yet. */
let times = new Float64Array(1)
let seen = 0
let repeats = 0
let settled = 0
let lastAt = 0

const listening = await listen(handle)

serve({
  address: () => listening.url,
  expect(argument) {
    const { frames, first } = Value.Parse(Expected, argument)
    below = first - 1
    times = new Float64Array(frames + 1)
    seen = repeats = settled = lastAt = 0
    globalThis.gc?.()
  },
  /** Waits for every callback, and a moment for those that come twice. */
  async all(argument) {
    const limit = now() + Value.Parse(Patience, argument).patience
    while (seen < times.length - 1 && now() < limit) await pause(LOOK)
    const complete = lastAt
    await pause(AFTERMATH)
    return { missing: times.length - 1 - seen, repeats, lastAt: complete }
  },
  times: () => [...times.subarray(1)],
  settled: () => settled,
})

function handle(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    if (request.url === '/tool') {
      response.writeHead(200, { 'content-length': TOOL_OUTPUT.length })
      response.end(TOOL_OUTPUT)
      return
    }
    const [first] = chunks
    count(chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks))
    response.writeHead(200, EMPTY)
    response.end()
  })
}

const EMPTY = { 'content-length': '0' }
const TOOL_OUTPUT = '{"order_id":"42","state":"shipped"}'
const SEQ = '"seq":'

/** Each transcript fact of the bench names its seq once; a batch holds several facts. */
function count(body: Buffer): void {
  const text = body.toString('latin1')
  let place = text.indexOf(SEQ)
  if (place === -1 && text.includes('"type":"turn.settled"')) settled++
  for (; place !== -1; place = text.indexOf(SEQ, place + SEQ.length))
    countSeq(Number.parseInt(text.slice(place + SEQ.length, place + 24), 10) - below)
}

function countSeq(place: number): void {
  if (!(place > 0 && place < times.length)) return
  if (times[place] !== 0) {
    repeats++
    return
  }
  lastAt = now()
  times[place] = lastAt
  seen++
}
