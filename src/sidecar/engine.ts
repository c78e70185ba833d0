import type { Secrets } from '../std/signature.ts'
import type { Bus } from '../core/bus.ts'
import type { HandlerSpec } from '../core/handler.ts'
import { fanOut, type Observer } from '../core/observer.ts'
import type { Clock, Http, Log, Random } from '../std/ports.ts'
import type { Service } from '../core/ports.ts'
import { pause } from '../std/pause.ts'
import type { Scope } from '../core/scope.ts'
import type { Shards } from '../core/shards.ts'
import type { Store } from '../core/store.ts'
import { StoreError } from '../core/store-error.ts'
import type { ToolSpec } from '../core/tool.ts'
import type { Tracer } from '../core/trace.ts'
import { createSummaries } from './deliver/summaries.ts'
import type { Dispatcher } from './deliver/dispatcher.ts'
import { handlerLog } from './deliver/targets/module.ts'
import { createAckBatcher } from './deliver/ack-batcher.ts'
import { createIntake } from './intake/commit.ts'
import { readFrame } from './intake/frame.ts'
import { createHintFilter, createOwnership } from './intake/ownership.ts'
import { createReconciler, createSessionReader, traced, type Reconciler } from './intake/reconcile.ts'
import { createExpectations } from './intake/schedule.ts'
import { createCallTaker, createItems, createPrefetch, readSession } from './intake/snapshot.ts'
import { createSweep } from './intake/sweep.ts'
import { createPoll, type PollSource } from './source/poll.ts'
import { createStream, type StreamSource } from './source/stream.ts'
import { createSubscriptionKeeper, type SubscriptionKeeper } from './source/subscription.ts'
import { createWebhookReceiver, type WebhookReceiver } from './source/webhook.ts'
import type { Tool } from './tools/context.ts'
import { createToolHost, type ToolHost } from './tools/host.ts'
import { createHttpRunner, createModuleRunner } from './tools/targets.ts'
import { createHandlers, registerHandlers } from './handlers.ts'
import { applyScope, lookForNewTools, markTranscript } from './past.ts'
import { logCallsWithoutTool, reportCommits, reportShards } from './report.ts'

/**
 * A sweep over 100,000 sessions takes 1,000 requests. Each start requests one, and so does the stream when it connects.
 * The sweep of the start waits this long, milliseconds, so that one sweep serves both.
 */
const CONNECTING = 2000
/** How long a new leader waits after the store refused its first writes, milliseconds. */
const LEAD_AGAIN = 500

export interface EngineOptions {
  service: Service
  store: Store
  http: Http
  clock: Clock
  random: Random
  log: Log
  observer: Observer
  /** Further subscribers to commits are added before `start`. */
  bus: Bus
  tracer: Tracer
  handlers: readonly HandlerSpec[]
  tools: readonly ToolSpec[]
  /** The attribute `source` of CloudEvents: the base URL of the service. */
  source: string
  startFrom: string
  /** null: every session is ours. */
  scope: Scope | null
  stream: { enabled: boolean }
  polling: { enabled: boolean; interval: number; sweep: number }
  webhooks: {
    enabled: boolean
    publicUrl: string | null
    secrets: Secrets
    tolerance: number
  }
}

/** The sidecar without sockets and files: everything that it uses is passed in. */
export interface Engine {
  /**
   * Starts all parts, and those of the leader if this process leads. The webhook subscription is started separately,
   * because it sends requests to the service at once.
   */
  start(): Promise<void>
  /** Stops claiming work, waits for work in progress, `grace` milliseconds at most, and stops. */
  stop(grace: number): Promise<void>
  webhooks: WebhookReceiver
  dispatcher: Dispatcher
  tools: ToolHost
  stream: StreamSource | null
  poll: PollSource | null
  subscription: SubscriptionKeeper | null
  reconciler: Reconciler
  shards: Shards
}

export function createEngine(options: EngineOptions): Engine {
  const { service, store, bus, http, clock, random, log, tracer, polling } = options
  const { shards } = store
  const ports = { http, clock, random, log, tracer }
  const toolNames = new Set(options.tools.map(({ name }) => name))
  const observer = fanOut([
    options.observer,
    logCallsWithoutTool(clock, log, toolNames.size > 0),
    toOthers(shards),
  ])
  const summaries = createSummaries(store, clock)
  const { traceOf } = summaries
  const acks = createAckBatcher(store, clock, log)
  const dispatcher = createHandlers(options.handlers, options.source, {
    ...ports,
    store,
    acks,
    summaries,
    observer,
  })

  const filter = createHintFilter(store, options.scope)
  const intake = createIntake({ store, bus, filter, hasTools: toolNames.size > 0 })
  const { hint, commit } = intake
  const ownership = createOwnership({ ...ports, store, scope: options.scope, filter, bus, commit })
  const expectations = createExpectations(clock, shards)
  const tools = createToolHost(
    {
      ...ports,
      service,
      store,
      observer,
      hint,
      sessions: {
        read: (sessionId, signal) => readSession(service, sessionId, signal),
        summary: summaries.get,
        traceOf: ({ sessionId }) => traceOf(sessionId),
      },
      add: intake.addCalls,
      step: intake.step,
    },
    new Map(options.tools.map((spec) => [spec.name, toolOf(spec, ports)])),
  )
  const calls = createCallTaker({ tools: toolNames, clock, bus, host: tools })
  const prefetch = createPrefetch({ service, store, ownership, calls, hint, clock, log })

  const stream = options.stream.enabled
    ? createStream({
        ...ports,
        service,
        store,
        observer,
        intake: { commit, readFrame },
        ownership,
        undelivered: dispatcher.window,
        startFrom: startOf(options.startFrom),
      })
    : null
  const poll = polling.enabled ? createPoll({ ...ports, ...polling, service, hint, observer }) : null
  const subscription =
    options.webhooks.enabled && options.webhooks.publicUrl !== null
      ? createSubscriptionKeeper({
          ...ports,
          service,
          store,
          observer,
          hint,
          url: options.webhooks.publicUrl,
          interval: polling.sweep,
        })
      : null
  /** Announces the turns of every session. On a process that does not lead, it is connected while the leader's stream is. */
  const announcer =
    stream === null
      ? null
      : { ...stream, connected: () => (shards.leads ? stream.connected() : shards.streamConnected) }
  const sweep = createSweep({
    ...ports,
    service,
    store,
    intake,
    ownership,
    stream: announcer,
    fromBeginning: options.startFrom === 'beginning',
  })
  const reader = createSessionReader({
    ...ports,
    service,
    store,
    bus,
    intake,
    items: stream === null ? createItems({ service, store, intake, clock, log }) : null,
    tools: toolNames,
    stream: announcer,
    prefetch,
    expectations,
    ownership,
    calls,
  })
  const reconciler = createReconciler({
    ...ports,
    service,
    store,
    bus,
    reader: traced(reader, { tracer, clock, traceOf }),
    traceOf,
    sweep,
  })
  const reportOwned = reportShards(shards, observer)
  const reports = reportCommits({ observer, service, tools: toolNames })

  bus.subscribe(ownership, expectations, prefetch, tools, reconciler, reports, summaries, dispatcher)
  if (poll !== null) bus.subscribe(poll)
  for (const part of [ownership, expectations, summaries, tools, reconciler, dispatcher])
    shards.subscribe(part)
  if (subscription !== null) shards.subscribe(subscription)
  bus.subscribe({ transient: (event) => shards.shareTransient(event) })

  /** Done by the leader before its stream starts, because it concerns the sessions of all replicas. */
  const prepare = async (): Promise<void> => {
    await ownership.begin(await applyScope(store, options.scope, ports))
    await markTranscript(store, log, stream === null ? 'items' : 'stream')
    await lookForNewTools({ store, intake, clock }, [...toolNames])
    // On an empty store, the first look (intake/sweep.ts) reads all sessions. A later start requests a sweep, which
    // finds what changed while the sidecar was stopped.
    if (await sweep.looked()) {
      const delay = stream === null ? 0 : CONNECTING
      await hint([{ sessionId: null, channel: 'poll', at: clock.now(), scope: 'turns', delay }])
      bus.report((to) => to.looked?.(true))
    }
  }

  const stopping = new AbortController()
  let phase: 'new' | 'following' | 'leading' | 'stopped' = 'new'
  /** When the leader ends, a process that followed it becomes the leader. */
  const lead = async (): Promise<void> => {
    if (phase !== 'following') return
    phase = 'leading'
    log.info({}, 'replicas: this one leads now')
    while (phase === 'leading') {
      try {
        await prepare()
        break
      } catch (error) {
        // Another process has taken over the store: this one must end, and does not lead.
        if (error instanceof StoreError && error.kind === 'fenced') throw error
        log.warn({ err: error }, 'replicas: the lead could not be taken yet')
        await pause(clock, LEAD_AGAIN, stopping.signal)
      }
    }
    if (phase !== 'leading') return
    stream?.start()
    poll?.start()
  }
  const leadSoon = (): void =>
    void lead().catch((error: unknown) => log.error({ err: error }, 'replicas: the lead was lost'))
  shards.subscribe({ led: leadSoon })

  return {
    dispatcher,
    tools,
    stream,
    poll,
    subscription,
    reconciler,
    shards,
    webhooks: createWebhookReceiver({
      clock,
      log,
      observer,
      tolerance: options.webhooks.tolerance,
      secrets: [options.webhooks.secrets, ...(subscription === null ? [] : [subscription.secrets])],
      reload: () => subscription?.reload() ?? null,
      storeHints: hint,
    }),
    async start() {
      await shards.join()
      reportOwned()
      const { leads } = shards
      const records = await registerHandlers(store.settings, options.handlers)
      if (leads) await prepare()
      else await ownership.begin(await applyScope(store, options.scope, ports))
      dispatcher.start(records)
      if (leads) stream?.start()
      tools.start()
      reconciler.start()
      if (leads) poll?.start()
      phase = leads ? 'leading' : 'following'
      if (shards.leads) await lead()
    },
    async stop(grace) {
      phase = 'stopped'
      stopping.abort()
      service.drain()
      poll?.stop()
      subscription?.stop()
      const looksFirst = reconciler.looksFirst()
      const read = reconciler.stop(grace)
      // From `leave` on, another process leads, while calls and callbacks under way end here.
      const leave = async (): Promise<void> => {
        await Promise.all([stream?.stop(grace), looksFirst ? read : null])
        await shards.leave()
      }
      await Promise.all([leave(), read, tools.stop(grace), dispatcher.stop(grace)])
    },
  }
}

/**
 * A read on another replica waits for the frame of a turn's end only while the leader's stream is connected. So the
 * leader reports the state of its stream.
 */
function toOthers(shards: Shards): Pick<Observer, 'channel'> {
  return {
    channel(name, { state }) {
      if (name === 'stream') shards.report({ streamConnected: state === 'live' })
    },
  }
}

function toolOf(
  spec: ToolSpec,
  ports: { http: Http; clock: Clock; random: Random; log: Log; tracer: Tracer },
): Tool {
  const run =
    spec.target.kind === 'http'
      ? createHttpRunner(spec, spec.target, ports)
      : createModuleRunner(spec.target.run, handlerLog(ports.log.child({ tool: spec.name })), ports.tracer)
  return { spec, run }
}

function startOf(startFrom: string): 'now' | 'beginning' | { seq: string } {
  return startFrom === 'now' || startFrom === 'beginning' ? startFrom : { seq: startFrom }
}
