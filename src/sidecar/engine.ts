import type { Call } from '../core/call.ts'
import type { HandlerSpec } from '../core/handler.ts'
import { fanOut, type Observer, type TransientEvent } from '../core/observer.ts'
import type { Clock, Http, Log, Random } from '../std/ports.ts'
import type { Service } from '../core/ports.ts'
import type { Scope } from '../core/scope.ts'
import type { Store } from '../core/store.ts'
import type { ToolSpec } from '../core/tool.ts'
import type { Tracer, TraceSource } from '../core/trace.ts'
import { createSummaries } from './deliver/summaries.ts'
import { createDispatcher, type Dispatcher } from './deliver/dispatcher.ts'
import { handlerLog } from './deliver/targets/module.ts'
import { createAckBatcher } from './deliver/ack-batcher.ts'
import { transientFact } from './deliver/transient.ts'
import { createAhead } from './intake/prefetch.ts'
import { createClaims } from './intake/expectations.ts'
import { summaryOf } from './intake/diff.ts'
import { readFrame } from './intake/frame.ts'
import { createIntake, type Intake } from './intake/intake.ts'
import { createItems } from './intake/items.ts'
import { createOwnership } from './intake/ownership.ts'
import { readNotice } from './intake/notice.ts'
import { createSessionReader } from './intake/read.ts'
import { createReconciler, type Reconciler } from './intake/reconcile.ts'
import { readSession } from './intake/look.ts'
import { createSweep } from './intake/sweep.ts'
import { traced } from './intake/trace.ts'
import { createPoll, type PollSource } from './source/poll.ts'
import { createStream, type StreamSource } from './source/stream.ts'
import { createSubscriptionKeeper, type SubscriptionKeeper } from './source/subscription.ts'
import { createWebhookReceiver, type WebhookReceiver } from './source/webhook.ts'
import { createHttpRunner } from './tools/http.ts'
import type { Step } from './tools/ledger.ts'
import { createToolHost, storedStep, type ToolHost } from './tools/host.ts'
import { createModuleRunner } from './tools/module.ts'
import { openHandlers } from './handlers.ts'
import { lookForNewTools } from './new-tools.ts'
import { applyScope } from './scope-change.ts'
import { markTranscript } from './transcript.ts'
import { logCallsWithoutTool } from './without-tool.ts'

/** A session that was found gone by the way is read so much later, milliseconds. */
const GONE_LOOK = 100

export interface EngineOptions {
  service: Service
  store: Store
  http: Http
  clock: Clock
  random: Random
  log: Log
  observer: Observer
  tracer: Tracer
  handlers: readonly HandlerSpec[]
  tools: readonly ToolSpec[]
  /** For CloudEvents: who we are. */
  source: string
  startFrom: string
  /** null: every session is ours. */
  scope: Scope | null
  stream: { enabled: boolean }
  polling: { enabled: boolean; interval: number; sweep: number }
  webhooks: {
    enabled: boolean
    publicUrl: string | null
    secrets: () => readonly string[]
    tolerance: number
  }
  onFirstLook: (done: boolean) => void
}

/** The sidecar less its sockets and files: everything that it touches is handed in. */
export interface Engine {
  /** All but the subscription, which needs the service at once. */
  start(): Promise<void>
  /** Stops claiming, lets what is under way end for `grace` milliseconds, stops. */
  stop(grace: number): Promise<void>
  webhooks: WebhookReceiver
  dispatcher: Dispatcher
  tools: ToolHost
  stream: StreamSource | null
  poll: PollSource | null
  subscription: SubscriptionKeeper | null
  reconciler: Reconciler
}

export function createEngine(options: EngineOptions): Engine {
  const { service, store, http, clock, random, log, tracer, polling } = options
  const ports = { http, clock, random, log, tracer }
  const summaries = createSummaries(store, clock)
  const traceOf = (sessionId: string): TraceSource => ({
    given: summaries.peek(sessionId)?.metadata['traceparent'],
    key: sessionId,
  })
  const startedAt = clock.steady()
  const acks = createAckBatcher(store, clock, log)
  let dispatcher: Dispatcher = createDispatcher([], acks)

  const claims = createClaims(clock)
  const toolNames = new Set(options.tools.map(({ name }) => name))
  const observer = fanOut([options.observer, logCallsWithoutTool(clock, log, toolNames.size > 0)])

  const ownership = createOwnership({
    ...ports,
    store,
    scope: options.scope,
    commit: (batch) => intake.commit(batch),
    onForeign: (sessionId) => claims.forget(sessionId),
  })
  const intake: Intake = createIntake({
    store,
    observer,
    ownership: () => ownership,
    clockOffset: () => service.clockOffset(),
    tools: toolNames,
    wake: {
      dirty(hints, ours) {
        claims.note(hints)
        ahead.dirty(ours)
      },
      lanes: (committed) => dispatcher.news(committed),
      hints: () => reconciler.wake(),
      calls: () => tools.wake(),
      session: (session) => summaries.update(session.id, summaryOf(session)),
    },
  })
  const hint = intake.hint
  const passTransient = (event: TransientEvent): void => {
    observer.transient(event)
    dispatcher.transient(transientFact(event))
  }

  const stream = options.stream.enabled
    ? createStream({
        ...ports,
        service,
        store,
        observer,
        commit: intake.commit,
        readFrame,
        onTransient: (event) => ownership.transient(event, passTransient),
        room: (signal) => ownership.room(signal),
        startFrom: startOf(options.startFrom),
      })
    : null
  const poll = polling.enabled
    ? createPoll({ ...ports, ...polling, hint, observer, authorized: () => service.authorized() })
    : null
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
  let looked = false
  const ahead = createAhead({
    clock,
    ready: () => looked && service.authorized(),
    read: (sessionId) => readSession(service, sessionId),
    onGone(sessionId) {
      // Not at once: it begins no reading ahead of its own.
      hint([{ sessionId, channel: 'poll', at: clock.now(), scope: 'session', delay: GONE_LOOK }]).catch(
        (error: unknown) => log.error({ err: error }, 'reconcile: a session that is gone could not be noted'),
      )
    },
  })
  const onFirstLook = (done: boolean): void => {
    looked = done
    poll?.swept(done ? null : 'the first look at the service failed')
    options.onFirstLook(done)
  }
  const sweep = createSweep({
    ...ports,
    service,
    store,
    intake,
    ownership,
    streamConnected: () => stream?.connected() ?? false,
    fromBeginning: options.startFrom === 'beginning',
  })
  const toolPorts = {
    ...ports,
    service,
    store,
    observer,
    hint,
    traceOf,
    add: (calls: readonly Call[]) => intake.addCalls(calls),
    step: (step: Step) => intake.step(storedStep(step, clock)),
    refresh: (sessionId: string) => reconciler.refresh(sessionId),
    summaryOf: async (sessionId: string) =>
      summaries.peek(sessionId) ?? (await store.resources.summary(sessionId)),
  }
  const tools: ToolHost = createToolHost(
    toolPorts,
    new Map(options.tools.map((spec) => [spec.name, toolOf(spec)])),
  )
  const reader = createSessionReader({
    ...ports,
    service,
    store,
    intake,
    items: stream === null ? createItems({ service, store, intake, clock, log }) : null,
    tools: () => toolNames,
    streamConnected: () => stream?.connected() ?? false,
    startedAt,
    announce: (session) => summaries.update(session.id, summaryOf(session)),
    ahead,
    claims,
    ownership,
    takeCalls: (calls) => tools.takeOn(calls),
    onActionsGone: (callIds, why) => tools.actionsGone(callIds, why),
  })
  const reconciler: Reconciler = createReconciler({
    ...ports,
    service,
    store,
    reader: traced(reader, { tracer, clock, traceOf }),
    traceOf,
    sweep,
    onFirstLook,
    onSwept: (problem) => poll?.swept(problem),
  })

  function toolOf(spec: ToolSpec) {
    const run =
      spec.target.kind === 'http'
        ? createHttpRunner(spec, spec.target, ports)
        : createModuleRunner(spec.target.run, handlerLog(log.child({ tool: spec.name })), tracer)
    return { spec, run }
  }

  const engine: Engine = {
    dispatcher,
    tools,
    stream,
    poll,
    subscription,
    reconciler,
    webhooks: createWebhookReceiver({
      clock,
      log,
      observer,
      tolerance: options.webhooks.tolerance,
      secrets: () => [...options.webhooks.secrets(), ...(subscription?.secrets() ?? [])],
      readNotice,
      storeHints: hint,
    }),
    async start() {
      dispatcher = await openHandlers(options.handlers, options.source, {
        ...ports,
        store,
        acks,
        summaries,
        observer,
      })
      engine.dispatcher = dispatcher
      await ownership.begin(await applyScope(store, options.scope, ports))
      await markTranscript(store, log, stream === null ? 'items' : 'stream')
      await lookForNewTools({ store, intake, clock }, [...toolNames])
      // On an empty store the first look reads everything; later starts look at what changed while we were away.
      if (await sweep.looked()) {
        await hint([{ sessionId: null, channel: 'poll', at: clock.now(), scope: 'turns', delay: 0 }])
        onFirstLook(true)
      }
      dispatcher.start()
      stream?.start()
      tools.start()
      reconciler.start()
      poll?.start()
    },
    async stop(grace) {
      poll?.stop()
      subscription?.stop()
      await Promise.all([
        stream?.stop(grace),
        reconciler.stop(grace),
        tools.stop(grace),
        dispatcher.stop(grace),
      ])
    },
  }
  return engine
}

function startOf(startFrom: string): 'now' | 'beginning' | { seq: string } {
  return startFrom === 'now' || startFrom === 'beginning' ? startFrom : { seq: startFrom }
}
