import { messageOf, OperatorError } from '../std/errors.ts'
import { ServiceError } from '../core/errors.ts'
import type { Clock, Log, Timer } from '../std/ports.ts'
import type { Health } from '../core/resource.ts'
import type { ToolSpec } from '../core/tool.ts'
import type { ServiceClient } from '../client/service.ts'
import { resultsOf } from '../client/discovery/results.ts'
import { missingScopes } from './scopes.ts'

/** A service that takes our connection and says nothing holds a start up no longer than this, milliseconds. */
const PATIENCE = 5000
/** Milliseconds between two questions to a service that has not answered yet. */
const AGAIN = 30_000

/**
 * Asks a service who we are to it, and what it can do. One that is away, or says nothing, is asked again while we work.
 * @returns null when it could not be reached.
 * @throws {OperatorError} exit code 3 when the token is rejected.
 */
export async function firstContact(
  service: ServiceClient,
  tools: readonly ToolSpec[],
  { clock, log }: { clock: Clock; log: Log },
): Promise<Health | null> {
  return await patiently(introduce(service, tools, log), clock, log)
}

/** Asks a service that did not answer at the start again, until `ask` says that it has. @returns what ends that. */
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

/** Has `stop` called once `end` is over, also when it is already. @returns what takes that back. */
export function onEnd(end: AbortSignal, stop: () => void): () => void {
  if (end.aborted) stop()
  else end.addEventListener('abort', stop, { once: true })
  return () => end.removeEventListener('abort', stop)
}

/** Says what the token cannot do that is wanted of it. */
export function warnOfScopes({ scopes }: Health, tools: readonly ToolSpec[], log: Log): void {
  for (const { scope, costs, grave } of missingScopes(scopes, tools))
    log[grave ? 'error' : 'warn']({ scope }, `token: it lacks a scope: ${costs}`)
}

/** @returns what `work` comes to; null when it takes too long, and goes on by itself. */
export async function patiently<T>(work: Promise<T>, clock: Clock, log: Log): Promise<T | null> {
  const { promise, resolve } = Promise.withResolvers<null>()
  const limit = clock.after(PATIENCE, () => {
    log.warn({}, `the service has not answered within ${PATIENCE / 1000} s; going on without it`)
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
    if (error instanceof ServiceError && error.unauthorized) {
      throw new OperatorError(
        'the service rejected the token (401). Mint a new one and give it in service.token or service.token_file.',
        3,
      )
    }
    log.warn({ error: messageOf(error) }, 'the service cannot be reached yet; going on, and trying again')
    return null
  }
  if (!health.usable) {
    log.error({ missing: health.missingScopes }, 'token: it cannot be used: mint one with the scopes named')
  } else warnOfScopes(health, tools, log)
  await describe(service, tools, log)
  return health
}

/** What the service's own description does not give is said once, with what it costs. */
async function describe(service: ServiceClient, tools: readonly ToolSpec[], log: Log): Promise<void> {
  const discovery = await service.discover()
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
