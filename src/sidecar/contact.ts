import { messageOf, OperatorError } from '../std/errors.ts'
import { ServiceError } from '../core/errors.ts'
import type { Clock, Log, Timer } from '../std/ports.ts'
import type { Health } from '../core/resource.ts'
import type { ToolSpec } from '../core/tool.ts'
import type { ServiceClient } from '../client/service.ts'
import { resultsOf } from '../client/discovery/results.ts'
import { missingScopes } from './scopes.ts'

/** The longest that a start waits for a service that accepts the connection and does not respond, milliseconds. */
const PATIENCE = 5000
/** Interval of the requests to a service that has not responded yet, milliseconds. */
const AGAIN = 30_000

/**
 * Reads the scopes of the token and the description of the service. If the service is unreachable or silent, the start
 * continues, and `keepAsking` repeats the request.
 * @returns null when the service could not be reached, or has not answered within PATIENCE.
 * @throws {OperatorError} exit code 3 when the token is rejected.
 */
export async function firstContact(
  service: ServiceClient,
  tools: readonly ToolSpec[],
  { clock, log }: { clock: Clock; log: Log },
): Promise<Health | null> {
  return await patiently(introduce(service, tools, log), clock, log)
}

/** When the service did not answer at the start, repeats `ask` until it returns true. @returns a function that stops it. */
export function keepAsking(ask: () => Promise<boolean>, clock: Clock): () => void {
  let timer: Timer
  let over = false
  const again = (): void => {
    timer = clock.after(AGAIN, () => {
      void ask().then((answered) => {
        if (!answered && !over) again()
      })
    })
  }
  again()
  return () => {
    over = true
    timer.cancel()
  }
}

/** Calls `stop` when `end` aborts, or at once if it is aborted already. @returns a function that removes the listener. */
export function onEnd(end: AbortSignal, stop: () => void): () => void {
  if (end.aborted) stop()
  else end.addEventListener('abort', stop, { once: true })
  return () => end.removeEventListener('abort', stop)
}

/** Logs the required scopes that the token lacks. */
export function warnOfScopes({ scopes }: Health, tools: readonly ToolSpec[], log: Log): void {
  for (const { scope, costs, grave } of missingScopes(scopes, tools))
    log[grave ? 'error' : 'warn']({ scope }, `token: it lacks a scope: ${costs}`)
}

/** @returns the result of `work`; null when it takes longer than PATIENCE. Then `work` continues in the background. */
export async function patiently<T>(work: Promise<T>, clock: Clock, log: Log): Promise<T | null> {
  const { promise, resolve } = Promise.withResolvers<null>()
  const limit = clock.after(PATIENCE, () => {
    log.warn({}, `the service has not answered within ${PATIENCE / 1000} s; continuing without it`)
    resolve(null)
  })
  try {
    return await Promise.race([work, promise])
  } finally {
    limit.cancel()
  }
}

async function introduce(
  service: ServiceClient,
  tools: readonly ToolSpec[],
  log: Log,
): Promise<Health | null> {
  let health: Health
  try {
    health = await service.health()
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'stopped') return null
    if (error instanceof ServiceError && error.unauthorized) {
      throw new OperatorError(
        'the service rejected the token (401)',
        3,
        'create a new one in the Console of the service, and give it in service.token or service.token_file',
      )
    }
    log.warn(
      { error: messageOf(error) },
      'the service cannot be reached yet; the sidecar starts, and tries again',
    )
    return null
  }
  if (!health.usable) {
    log.error(
      { missing: health.missingScopes },
      'token: it cannot be used; create a new token that has the missing scopes',
    )
  } else warnOfScopes(health, tools, log)
  await describe(service, tools, log)
  return health
}

/** Logs once, with the consequence, each detail that discovery did not find in the description of the service. */
async function describe(service: ServiceClient, tools: readonly ToolSpec[], log: Log): Promise<void> {
  const discovery = await service.discover().catch(() => null)
  // The process stops.
  if (discovery === null) return
  const { fault } = discovery
  if (fault !== null)
    log.warn({ fault }, 'discovery: the description of the service cannot be read; trying again')
  for (const { name, found, without, override } of resultsOf(discovery)) {
    if (found !== null) continue
    const level = name === 'answer route' && tools.length > 0 ? 'error' : 'warn'
    const fix = override === null ? '' : `; set service.routes.${override}`
    log[level]({ result: name, override }, `discovery: no ${name}: ${without}${fix}`)
  }
}
