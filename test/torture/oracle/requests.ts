import type { Passed } from '../../support/gateway.ts'
import type { Fault } from '../../checker/history.ts'
import type { Round } from './evidence.ts'

/** An answer may take so long to be read, and a request that was on its way to arrive, milliseconds. */
const SLACK = 1500
/** Before an answer: what went wrong then may have kept it. */
const BEFORE = 3000

/** What another process with the token learns through the store, it knows so late; and how exactly, milliseconds. */
const SHARED = 2500
const INEXACT = 2500

/** The requests of a program, or of several with one token. */
export interface Requests extends Pick<Round, 'gateway' | 'service' | 'tally'> {
  processOf(request: Passed): string
  /** Whether nothing kept the process of the request from reading answers, wall milliseconds. */
  isUndisturbed(request: Passed, from: number, until: number): boolean
}

/** I9. Where the line or the program itself was troubled meanwhile, the answer may never have been read. */
export function heeded(world: Requests): Fault[] {
  const { passed } = world.gateway
  return passed.flatMap((refusal, index) => {
    if (refusal.answeredAt === null) return []
    if (refusal.status !== 401 && refusal.status !== 429) return []
    const at = wall(refusal.answeredAt)
    const until = refusal.status === 401 ? Infinity : at + retryAfter(refusal) - SLACK
    const by = world.processOf(refusal)
    for (const next of passed.slice(index + 1)) {
      const sent = wall(next.at)
      if (sent > until) break
      const isOwn = world.processOf(next) === by
      // A token that is rejected is each process's own affair.
      const mustHeed = isOwn
        ? sent > at + SLACK
        : refusal.status === 429 && sent > at + SHARED && sent < until - INEXACT
      if (!mustHeed || !sameLimit(world, refusal, next)) continue
      if (!world.isUndisturbed(refusal, at - BEFORE, sent)) break
      if (!isOwn && !world.isUndisturbed(next, at - BEFORE, sent)) continue
      world.tally.add('refusals examined')
      return [
        {
          invariant: 'I9',
          message: `${next.method} ${next.path} came ${Math.round(sent - at)} ms after a ${refusal.status} to ${refusal.method} ${refusal.path}`,
        },
      ]
    }
    world.tally.add('refusals examined')
    return []
  })
}

/** Whether the second request is one that the first's refusal forbids. */
function sameLimit({ service }: Requests, refusal: Passed, next: Passed): boolean {
  if (refusal.headers.authorization !== next.headers.authorization) return false
  if (refusal.status === 401) return true
  const bucket = service.details.name === 'a' ? 'x-ratelimit-bucket' : 'service-budget-name'
  const named = refusal.reply?.[bucket]
  return named !== undefined && next.reply?.[bucket] === named && !isStream(refusal) && !isStream(next)
}

function isStream({ headers }: Passed): boolean {
  return headers.accept?.includes('text/event-stream') === true
}

function retryAfter({ reply }: Passed): number {
  return Number(reply?.['retry-after'] ?? 0) * 1000
}

function wall(steady: number): number {
  return performance.timeOrigin + steady
}
