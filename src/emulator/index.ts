/// <reference types="node" preserve="true" />
import type { AddressInfo } from 'node:net'
import { Budgets } from './budget.ts'
import { Clock } from './clock.ts'
import { DataFile } from './keep/file.ts'
import { Keeper, timeOf } from './keep/keeper.ts'
import { makeExistingSessions } from './existing-session.ts'
import { Faults, type FaultSettings } from './fault.ts'
import { Idempotency } from './idempotency.ts'
import { Ledger } from './ledger.ts'
import { STATED_LIMITS, type Limits } from './limits.ts'
import { EventLog } from './log.ts'
import { Models } from './model.ts'
import type { OpenPart } from './open-part.ts'
import { describe } from './openapi.ts'
import type { Operation } from './operation.ts'
import { resolveByPerson, type Verdict } from './person.ts'
import { profileA } from './profile/a.ts'
import { profileB } from './profile/b.ts'
import { publish } from './publish.ts'
import { agentOperations } from './routes/agent.ts'
import { answerOperations } from './routes/answer.ts'
import { artifactOperations } from './routes/artifact.ts'
import { discovery } from './routes/discovery.ts'
import { environmentProfileOperations } from './routes/environment-profile.ts'
import { fileOperations } from './routes/files.ts'
import { forkOperations } from './routes/fork.ts'
import { inputOperations } from './routes/input.ts'
import { modelOperations } from './routes/model.ts'
import { checkMix, mountOwnRoutes } from './routes/own.ts'
import { previewOperations } from './routes/preview.ts'
import { mountPublicPreviews } from './routes/public-preview.ts'
import { sessionOperations } from './routes/session.ts'
import { streamOperations } from './routes/stream.ts'
import { templateOperations } from './routes/template.ts'
import { toolOperations } from './routes/tools.ts'
import { webhookOperations } from './routes/webhook.ts'
import { SavedAgents } from './saved-agent.ts'
import { checkScenario, DEFAULT_SCENARIO, loadScenario } from './scenario/file.ts'
import type { Scenario } from './scenario/schema.ts'
import { createServer, mount } from './server.ts'
import { Sessions } from './session.ts'
import { Streams } from './stream.ts'
import { Tokens, type Scope } from './token.ts'
import { viewLedger, type LedgerView } from './truth.ts'
import { Webhooks } from './webhook.ts'
import type { World } from './world.ts'

export { DataFileError } from './keep/file.ts'
export { loadScenario } from './scenario/file.ts'
export { scenarioSchema, type Scenario } from './scenario/schema.ts'
export { playTour, type TourCounts, type TourOptions } from './tour.ts'
export type { FaultSettings } from './fault.ts'
export type { Limits } from './limits.ts'
export { OPEN_PARTS, type OpenPart } from './open-part.ts'
export type {
  LedgerAction,
  LedgerDelivery,
  LedgerEvent,
  LedgerSession,
  LedgerTurn,
  LedgerView,
} from './truth.ts'
export type { Scope } from './token.ts'

export interface EmulatorOptions {
  /** 127.0.0.1 and any free port by default. */
  listen?: { host?: string; port?: number }
  /** A scenario file, or its content. Without a scenario, each line of a message is a step. */
  scenario?: string | Scenario
  /** The token that exists at the start, with every scope except `cli`. */
  token?: string
  /** The choice for all details that the interface leaves open. */
  openDetails?: 'a' | 'b'
  /** Parts that the description omits. They work all the same. */
  leaveOut?: readonly OpenPart[]
  /** Webhook addresses may be http on loopback. */
  allowHttpWebhooks?: boolean
  /** Limits that differ from those of the interface, for tests. */
  limits?: Partial<Limits>
  /**
   * Host names that the emulator's own routes (`/_emulator`) accept besides addresses, `localhost` and names without
   * a dot.
   */
  allowedHosts?: readonly string[]
  /** The domain of published previews. Without it no preview can be published. */
  previewDomain?: string
  /** The time at the start, milliseconds since the epoch; by default that of the machine. */
  startAt?: number
  /**
   * A file that keeps the state of the emulator across restarts; created if it does not exist. A turn under way at a stop
   * or a kill fails at the next start, like a turn whose workspace was reclaimed.
   */
  data?: string
}

/** A running service of one organization. */
export interface Emulator {
  readonly baseUrl: string
  readonly token: string
  /** Everything that happened: every event after `afterSeq`, and every turn, action, answer and delivery. */
  ledger(afterSeq?: number): LedgerView
  /** Moves the clock by `ms`; everything that becomes due on the way happens. */
  advance(ms: number): Promise<void>
  /** The service's time, milliseconds since the epoch. */
  now(): number
  readonly faults: { get(): FaultSettings; set(settings: FaultSettings): void }
  /** Uses another scenario for all later messages. */
  follow(scenario: Scenario): void
  /** The actions of a person in the Console. */
  resolveAction(callId: string, verdict: Verdict): void
  mintToken(scopes: readonly Scope[], days?: number): { id: string; token: string }
  revokeToken(id: string): boolean
  /**
   * Publishes a persisted event on a session, as its agent would, and returns its `seq`. For load and for hostile
   * frames.
   */
  publish(
    sessionId: string,
    type: string,
    payload: Readonly<Record<string, unknown>>,
    turnId?: string | null,
  ): number
  /** The number of open streams. */
  openStreams(): number
  close(): Promise<void>
}

/**
 * Starts an emulator of the Agent Session Service on a socket of its own. It shares nothing with other emulators.
 * @throws {DataFileError} when the data file is damaged, foreign or in use. @throws {Error} when the scenario cannot be
 * read or the address cannot be used.
 */
export async function startEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  const details = options.openDetails === 'b' ? profileB : profileA
  const scenario = scenarioOf(options.scenario)
  const file = options.data === undefined ? null : new DataFile(options.data, details.name)
  const startAt = file === null ? options.startAt : (timeOf(file) ?? options.startAt)
  let keeper: Keeper | null = null
  const world = createWorld(options, { details, scenario, startAt, save: () => keeper?.save() })
  if (file === null || file.fresh) makeExistingSessions(world)
  if (file !== null) keeper = new Keeper(file, world)
  const app = createServer(world)
  const mounted: Operation[] = []
  const leftOut = new Set(options.leaveOut)
  // The description is generated from the mounted operations.
  app.addHook('onRoute', ({ config }) => {
    if (config?.operation !== undefined) mounted.push(config.operation)
  })
  app.after(() => {
    mount(
      app,
      world,
      operationsOf(world, () => describe(mounted, world.details, leftOut)),
    )
    mountOwnRoutes(app, world, options.allowedHosts)
    mountPublicPreviews(app, world)
  })
  const close = async (): Promise<void> => {
    world.clock.close()
    for (const session of world.sessions.live())
      session.run?.controller.abort(new Error('the emulator was closed'))
    world.streams.dropAll()
    await Promise.all([app.close(), world.webhooks.close()])
    keeper?.close()
  }
  try {
    await app.listen({ host: options.listen?.host ?? '127.0.0.1', port: options.listen?.port ?? 0 })
  } catch (error) {
    await close()
    throw error
  }
  /**
   * The state is stored before a value is returned, as the effect of a request is stored before its answer is sent.
   */
  const stored = <T>(value: T): T => {
    world.save()
    return value
  }
  const { address, family, port } = app.server.address() as AddressInfo
  return {
    baseUrl: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    token: options.token ?? DEFAULT_TOKEN,
    ledger: (afterSeq = 0) => stored(viewLedger(world, afterSeq)),
    advance: (ms) => world.clock.advance(ms),
    now: () => world.clock.now(),
    faults: { get: () => world.faults.get(), set: (settings) => world.faults.set(settings) },
    follow(scenario) {
      world.scenario = checkScenario(scenario)
    },
    resolveAction: (callId, verdict) => void resolveByPerson(world, callId, verdict),
    mintToken: (scopes, days = 7) => {
      checkMix(world, scopes)
      const { id, secret } = world.tokens.mint(scopes, days)
      return stored({ id, token: secret })
    },
    revokeToken: (id) => stored(world.tokens.revoke(id)),
    publish: (sessionId, type, payload, turnId = null) => {
      const session = world.sessions.find(sessionId)
      if (session === undefined) throw new Error(`no session ${sessionId}`)
      return stored(publish(world, session, turnId, type, { stated: payload }).seq)
    },
    openStreams: () => world.streams.size,
    close,
  }
}

const DEFAULT_TOKEN = 'svc_pat_dev'

/** The settings that the world needs. */
type Given = Pick<World, 'details' | 'scenario' | 'save'> & { startAt: number | undefined }

function createWorld(options: EmulatorOptions, { details, scenario, startAt, save }: Given): World {
  const limits: Limits = { ...STATED_LIMITS, ...details.limits, ...options.limits }
  const clock = new Clock(startAt)
  const faults = new Faults()
  const sessions = new Sessions()
  const log = new EventLog(limits.events, (firstKept) => {
    for (const session of sessions.live()) session.items = session.items.filter(({ seq }) => seq >= firstKept)
  })
  const ledger = new Ledger(limits.ledgerEntries)
  const streams = new Streams({ clock, limits, faults, details, log, save })
  faults.onChange(({ drop_streams }) => {
    if (drop_streams === true) streams.dropAll()
  })
  return {
    clock,
    details,
    limits,
    faults,
    sessions,
    log,
    ledger,
    idempotency: new Idempotency(clock, details.idempotency),
    streams,
    tokens: new Tokens(clock, options.token ?? DEFAULT_TOKEN),
    budgets: new Budgets(clock, limits),
    models: new Models(),
    savedAgents: new SavedAgents(details.templatesApart),
    webhooks: new Webhooks({ clock, limits, faults, details, ledger, save }),
    scenario,
    previewDomain: options.previewDomain ?? scenario.deployment?.preview_domain ?? null,
    allowHttpWebhooks: options.allowHttpWebhooks ?? false,
    save,
  }
}

function scenarioOf(given: string | Scenario | undefined): Scenario {
  if (given === undefined) return DEFAULT_SCENARIO
  return typeof given === 'string' ? loadScenario(given) : checkScenario(given)
}

function operationsOf({ details, limits }: World, describeMounted: () => unknown): Operation[] {
  return [
    ...discovery(describeMounted),
    ...sessionOperations(details, limits),
    ...toolOperations(details),
    ...forkOperations(details),
    ...previewOperations(details),
    ...fileOperations(details),
    ...inputOperations(details),
    ...answerOperations(details),
    ...artifactOperations(details),
    ...streamOperations(details),
    ...webhookOperations(details),
    ...modelOperations(details),
    ...agentOperations(details),
    ...templateOperations(details),
    ...environmentProfileOperations(details),
  ]
}
