import { plainTracer } from '../../../src/core/trace.ts'
import { readAnswer } from '../../../src/sidecar/deliver/targets/verdict.ts'
import { readJson } from '../../../src/std/depth.ts'
import { discoverWhole } from '../../../src/client/discovery/whole.ts'
import { createHttpRunner, createModuleRunner } from '../../../src/sidecar/tools/targets.ts'
import { VirtualClock } from '../../support/clock.ts'
import { fakeHttp, seededRandom } from '../../support/ports.ts'
import { plainDocument } from '../../support/service/documents.ts'
import { SPEC } from '../../tools/world.ts'

const CALL = {
  callId: 'c', name: 'lookup', arguments: {}, sessionId: 's', turnId: 't', createdAt: 1,
  expiresAt: null, attempt: 1, uncertain: false, session: { title: null, metadata: {}, status: 'working' },
} // prettier-ignore

const tracer = plainTracer(seededRandom())
const { signal } = new AbortController()

/** A document of `bytes` bytes whose paths all are candidates of discovery. */
async function readDocument(bytes: number): Promise<number> {
  const document = plainDocument as { paths?: Record<string, unknown> }
  const paths = Object.entries(document.paths ?? {})
  const unit = JSON.stringify(paths).length
  const many: Record<string, unknown> = {}
  for (let copy = 0; copy * unit < bytes; copy++)
    for (const [path, item] of paths) many[copy === 0 ? path : `/copy${copy}${path}`] = item
  const text = JSON.stringify({ ...document, paths: many })
  discoverWhole(readJson(text))
  return text.length
}

/** Outputs that the service could just take: a control character is six bytes as JSON. */
async function readOutput(bytes: number, character: string): Promise<number> {
  const output = character.repeat(bytes)
  const run = createModuleRunner(
    async () => ({ kind: 'output', output }),
    { debug() {}, info() {}, warn() {}, error() {} },
    tracer,
  )
  await run(CALL, signal)
  return bytes
}

async function readToolAnswer(bytes: number, character: string): Promise<number> {
  const body = character.repeat(bytes)
  const { http } = fakeHttp(() => ({ status: 200, headers: {}, body, truncated: false }))
  const target = {
    url: 'http://127.0.0.1:1/',
    secrets: { current: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'] },
  }
  await createHttpRunner(SPEC, target, { http, clock: new VirtualClock(), tracer })(CALL, signal)
  return bytes
}

async function readHandlerAnswer(bytes: number, body: string): Promise<number> {
  readAnswer({ status: 200, headers: {}, body }, 1)
  return bytes
}

/** What apps and the service answer, after it was read: nanoseconds that a byte may cost. */
export const ANSWER_READERS = [
  { name: 'a discovery document', bound: 2000, read: readDocument },
  ...['x', '\u0001'].flatMap((character) => [
    {
      name: `a module output of ${JSON.stringify(character)}`,
      bound: 200,
      read: (bytes: number) => readOutput(bytes, character),
    },
    {
      name: `a tool answer of ${JSON.stringify(character)}`,
      bound: 300,
      read: (bytes: number) => readToolAnswer(bytes, character),
    },
  ]),
  {
    name: 'a handler answer',
    bound: 300,
    read: (bytes: number) => readHandlerAnswer(bytes, `{"verdict":[${'0,'.repeat(bytes / 2)}0]}`),
  },
]
