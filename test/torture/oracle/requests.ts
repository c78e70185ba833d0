import type { Passed } from '../../support/gateway.ts'
import type { Fault } from '../../checker/history.ts'
import type { World } from '../world.ts'

/** An answer may take so long to be read, and a request that was on its way to arrive, milliseconds. */
const SLACK = 1500
/** Before an answer: what went wrong then may have kept it. */
const BEFORE = 3000

/** I9. Where the line or the program itself was troubled meanwhile, the answer may never have been read. */
export function heeded(world: World): Fault[] {
  const { passed } = world.gateway
  return passed.flatMap((refusal, index) => {
    if (refusal.answeredAt === null) return []
    if (refusal.status !== 401 && refusal.status !== 429) return []
    const at = wall(refusal.answeredAt)
    const until = refusal.status === 401 ? Infinity : at + retryAfter(refusal) - SLACK
    for (const next of passed.slice(index + 1)) {
      const sent = wall(next.at)
      if (sent > until) break
      if (sent < at + SLACK || !sameLimit(world, refusal, next)) continue
      if (!undisturbed(world, at - BEFORE, sent)) break
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
function sameLimit({ service }: World, refusal: Passed, next: Passed): boolean {
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

/** One life, on a quiet line, never stopped. */
function undisturbed({ links, pauses, sidecar }: World, from: number, until: number): boolean {
  const lived = sidecar.lives.some((life) => life.from < from && (life.until ?? Infinity) > until)
  const stopped = pauses.some((pause) => pause.from < until && pause.until > from)
  return lived && !stopped && links.service.quiet(from, until)
}

function wall(steady: number): number {
  return performance.timeOrigin + steady
}
