import type { Json } from '../../src/std/json.ts'
import type { HttpReply, Random } from '../../src/std/ports.ts'
import { plainTracer } from '../../src/core/trace.ts'
import { createHttpRunner } from '../../src/sidecar/tools/targets.ts'
import { VirtualClock } from '../support/clock.ts'
import { fakeHttp, seededRandom } from '../support/ports.ts'
import { SPEC } from '../tools/world.ts'
import { replyOf } from './answers.ts'
import { mutateText, mutateValue } from './mutate.ts'
import { Tally } from './tally.ts'

/** What the service takes as the output of a call, bytes as JSON. */
const OUTPUT = 1024 * 1024

/** Answers of tools to calls that are hostile as well: each is an output that the service takes, or none at all. */
export async function attackTools(count: number, random: Random): Promise<Tally> {
  const tally = new Tally()
  let reply: HttpReply = replyOf(random)
  const { http, requests } = fakeHttp(() => reply)
  const run = createHttpRunner(
    SPEC,
    { url: 'http://127.0.0.1:1/', secrets: { current: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'] } },
    { http, clock: new VirtualClock(), tracer: plainTracer(seededRandom()) },
  )
  for (let index = 0; index < count; index++) {
    reply = replyOf(random)
    const call = {
      ...CALL,
      callId: mutateText('call_1', random),
      arguments: mutateValue(CALL.arguments, random) as Json,
    }
    const result = await run(call, new AbortController().signal)
    if (result.kind === 'output' && (reply.status >= 300 || JSON.stringify(result.output).length > OUTPUT))
      throw new Error(`${JSON.stringify(reply).slice(0, 500)} became ${JSON.stringify(result).slice(0, 500)}`)
    // Throws at what no header can hold.
    for (const value of Object.values(requests.pop()?.headers ?? {})) new Headers().set('x', value)
    tally.note(result.kind)
  }
  return tally
}

const CALL = {
  callId: 'c', name: 'lookup', arguments: { order: [1, 'two', { three: null }] }, sessionId: 's', turnId: 't', createdAt: 1,
  expiresAt: null, attempt: 1, uncertain: false, session: { title: null, metadata: {}, status: 'working' },
} // prettier-ignore
