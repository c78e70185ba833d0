import type { Log } from '../../../src/std/ports.ts'
import { createService } from '../../../src/client/service.ts'
import type { ServiceClient, ServiceOptions } from '../../../src/client/service.ts'
import { createHttp } from '../../../src/system/http.ts'
import { ManualClock } from './clock.ts'
import { startServer } from './server.ts'
import type { Answerer, Said, TestServer } from './server.ts'

export interface Bench extends AsyncDisposable {
  server: TestServer
  service: ServiceClient
  clock: ManualClock
  /** Messages at warn and above. */
  warnings: string[]
  retried: string[]
  seen: { operation: string; statusClass: string }[]
}

/** Answers by `METHOD path`; what is not among them is the service's own 404. The description comes from `document`. */
export function routes(document: unknown, answers: Record<string, Answerer>): Answerer {
  return (asked, response) => {
    const answer = answers[`${asked.method} ${asked.path}`]
    if (answer !== undefined) return answer(asked, response)
    if (asked.path === '/v1/openapi.json') return { body: document }
    return refusal(404, 'not_found')
  }
}

export function refusal(status: number, code: string, headers: Record<string, string> = {}): Said {
  return { status, headers, body: { error: { code, message: `refused: ${code}`, request_id: 'req_1' } } }
}

/** A client on a clock that stands still, without jitter, before a server with given answers. */
export async function startBench(answer: Answerer, options: Partial<ServiceOptions> = {}): Promise<Bench> {
  const server = await startServer(answer)
  const clock = new ManualClock()
  const http = createHttp()
  const warnings: string[] = []
  const retried: string[] = []
  const seen: Bench['seen'] = []
  const log: Log = {
    debug: () => undefined,
    info: () => undefined,
    warn: (_details, message) => void warnings.push(message),
    error: (_details, message) => void warnings.push(message),
    child: () => log,
  }
  const service = createService({
    baseUrl: server.url,
    token: 'svc_pat_one',
    http,
    clock,
    random: { next: () => 0, hex: () => '' },
    log,
    observe: ({ operation, statusClass }) => seen.push({ operation, statusClass }),
    onRetry: (code) => retried.push(code),
    ...options,
  })
  return {
    server,
    service,
    clock,
    warnings,
    retried,
    seen,
    async [Symbol.asyncDispose]() {
      service.stop()
      await http.close()
      await server[Symbol.asyncDispose]()
    },
  }
}

/** What a promise that is to fail failed with. */
export function faultOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'no fault',
    (error: unknown) => error,
  )
}
