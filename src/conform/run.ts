import { randomBytes } from 'node:crypto'
import { NetworkFault, OperatorError, messageOf } from '../std/errors.ts'
import type { Http } from '../std/ports.ts'
import { Belongings } from './belongings.ts'
import { RULES } from './catalogue.ts'
import type { Check } from './check.ts'
import { CHECKS } from './checks.ts'
import { Deployment } from './deployment.ts'
import { Description } from './description.ts'
import { Feed } from './feed.ts'
import { at, rowsOf } from './kind.ts'
import { findPlaces, type Places } from './places.ts'
import type { Receiver } from './receiver.ts'
import type { Reply } from './reply.ts'
import { Stuck } from './stuck.ts'
import { Trial, type Ground } from './trial.ts'
import { UNSEEN } from './unseen.ts'
import { Verdicts, type Verdict } from './verdict.ts'
import { watch, WATCHED } from './watch.ts'

export interface ConformOptions {
  http: Http
  baseUrl: string
  token: string
  /** Creates sessions and other resources on the deployment, and removes them. */
  write: boolean
  /** The rules to check; default all. */
  only?: ReadonlySet<string>
  /** The number of checks that run at the same time; each needs about one session. */
  parallel: number
  /** Milliseconds for the whole run without the cleanup. */
  timeout: number
  /** Milliseconds that a check waits for the agent. */
  patience: number
  /** The local listener of webhook deliveries, and its public address. */
  webhook?: { receiver: Receiver; url: string } | null
  /** Ends the run early; its resources are still removed. */
  signal?: AbortSignal
}

export interface Report {
  readonly deployment: string
  /** Every requested rule, once, in the order of the rule list. */
  readonly verdicts: readonly Verdict[]
  readonly requests: number
  readonly sessions: { readonly made: number; readonly most: number }
  /** The resources that could not be removed, as `session ID`. */
  readonly left: readonly string[]
  /** The reason of an early end, or null. */
  readonly ended: string | null
  readonly seconds: number
}

/**
 * Runs the rules of the interface against a deployment.
 * @throws {OperatorError} exit code 3 when the token is rejected, 1 when the deployment does not answer as the service.
 */
export async function conform(options: ConformOptions): Promise<Report> {
  const began = performance.now()
  const controller = new AbortController()
  const end = (why: string): void => controller.abort(why)
  const timer = setTimeout(() => end(`the ${options.timeout / 1000} s of the run were over`), options.timeout)
  const interrupt = (): void => end('the run was interrupted')
  options.signal?.addEventListener('abort', interrupt, { once: true })
  if (options.signal?.aborted === true) interrupt()
  const verdicts = new Verdicts(options.token)
  let places: Places | null = null
  let belongings: Belongings | null = null
  const deployment = new Deployment({
    ...options,
    signal: controller.signal,
    onReply: (reply) => {
      watch(reply, verdicts, options.token, places)
      belongings?.see(reply)
    },
  })
  let left: string[] = []
  let feed: Feed | null = null
  try {
    const health = await firstAnswer(deployment)
    const described = await deployment.call('GET', '/v1/openapi.json', { token: null })
    const description = new Description(described.json)
    places = findPlaces(description)
    belongings = new Belongings(deployment, places, randomBytes(6).toString('hex'))
    feed = options.write ? await Feed.open(deployment, '/v1/events').catch(withoutFeed) : null
    const ground: Ground = {
      deployment,
      description,
      described,
      health,
      places,
      belongings,
      verdicts,
      feed,
      patience: options.patience,
      webhook: options.webhook ?? null,
    }
    await runAll(ground, options)
  } catch (error) {
    end('the run failed')
    throw error
  } finally {
    clearTimeout(timer)
    options.signal?.removeEventListener('abort', interrupt)
    feed?.close()
    if (options.write) left = (await belongings?.release()) ?? []
  }
  const wanted = RULES.filter(({ id }) => options.only?.has(id) ?? true)
  return {
    deployment: deployment.baseUrl,
    verdicts: wanted.map((rule) => verdicts.of(rule)),
    requests: deployment.requests,
    sessions: { made: belongings.made, most: belongings.most },
    left,
    ended: controller.signal.aborted ? String(controller.signal.reason) : null,
    seconds: Math.round((performance.now() - began) / 100) / 10,
  }
}

function withoutFeed(error: unknown): null {
  if (error instanceof Stuck) return null
  throw error
}

/** A read of health is the cheapest proof that the deployment answers and accepts the token. */
async function firstAnswer(deployment: Deployment): Promise<Reply> {
  const reply = await deployment.call('GET', '/v1/health').catch((error: unknown) => {
    throw error instanceof Stuck || error instanceof NetworkFault
      ? new OperatorError(`${deployment.baseUrl} cannot be tested: ${error.message}; see --base-url`)
      : error
  })
  if (reply.status === 401) {
    throw new OperatorError(`${deployment.baseUrl} rejected the token; see --token-file`, 3)
  }
  if (reply.status === 200 && at(reply.json, 'scopes') !== undefined) return reply
  throw new OperatorError(
    `${deployment.baseUrl} does not answer as the service: GET /v1/health gave ${reply.status} ${reply.headers['content-type'] ?? ''}; see --base-url`,
  )
}

async function runAll(ground: Ground, options: ConformOptions): Promise<void> {
  const { verdicts } = ground
  const wanted = (ids: readonly string[]): boolean => ids.some((id) => options.only?.has(id) ?? true)
  const scopes = rowsOf(at(ground.health.json, 'scopes'))
  const ready: Check[] = []
  for (const check of CHECKS) {
    if (!wanted(check.ids)) continue
    const obstacle = obstacleOf(check, options.write, scopes)
    if (obstacle === null) ready.push(check)
    else for (const id of check.ids) verdicts.leave(id, check.title, obstacle)
  }
  const aside = ready.filter((check) => check.aside === true)
  const inTurn = ready.filter((check) => check.aside !== true)
  await Promise.all([
    sideBySide(aside, ground, aside.length),
    oneAfterAnother(inTurn, ground, options.parallel),
  ])
  for (const [why, ids] of UNSEEN) for (const id of ids) verdicts.leave(id, null, why)
  for (const id of WATCHED) verdicts.leave(id, null, 'no answer of the run showed it')
}

/** Checks that change nothing run before those that create resources, so that they do not see these resources. */
async function oneAfterAnother(checks: readonly Check[], ground: Ground, parallel: number): Promise<void> {
  await sideBySide(
    checks.filter(({ needs }) => !needs.write),
    ground,
    parallel,
  )
  await sideBySide(
    checks.filter(({ needs }) => needs.write),
    ground,
    parallel,
  )
}

/** @throws the error of a check, after the other checks have ended. */
async function sideBySide(checks: readonly Check[], ground: Ground, parallel: number): Promise<void> {
  const queue = checks.values()
  const workers = await Promise.allSettled(
    Array.from({ length: parallel }, async () => {
      for (const check of queue) await runOne(ground, check)
    }),
  )
  const failed = workers.find((worker) => worker.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}

function obstacleOf({ needs }: Check, write: boolean, scopes: readonly unknown[]): string | null {
  if (needs.write && !write) return 'needs --write'
  const missing = needs.scopes.filter((scope) => !scopes.includes(scope))
  return missing.length === 0 ? null : `the token lacks ${missing.join(', ')}`
}

/** Even if the check fails with an error, every one of its rules gets a verdict. */
async function runOne(ground: Ground, check: Check): Promise<void> {
  let why = 'the check did not reach it'
  const trial = new Trial(ground, check)
  try {
    await check.run(trial)
  } catch (error) {
    if (error instanceof OperatorError) throw error
    why =
      error instanceof Stuck
        ? error.message
        : `the check itself failed, please report it: ${messageOf(error)}`
  } finally {
    await trial.tidy()
  }
  for (const id of check.ids) ground.verdicts.leave(id, check.title, why)
}
