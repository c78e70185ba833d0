import { plainTracer } from '../../src/core/trace.ts'
import { onTestFinished } from 'vitest'
import { newCall, type Call, type CallRoom } from '../../src/core/call.ts'
import { ServiceError } from '../../src/core/errors.ts'
import type { Lease } from '../../src/core/lease.ts'
import type { Hint } from '../../src/core/hint.ts'
import { fanOut, type CallReport } from '../../src/core/observer.ts'
import type { Answer, Service } from '../../src/core/ports.ts'
import type { Session } from '../../src/core/resource.ts'
import type { Store } from '../../src/core/store.ts'
import type { ToolCall, ToolResult, ToolSpec } from '../../src/core/tool.ts'
import type { JsonObject } from '../../src/std/json.ts'
import { readItem, readSession } from '../../src/core/wire.ts'
import type { Step } from '../../src/sidecar/tools/context.ts'
import { createToolHost, type ToolHost } from '../../src/sidecar/tools/host.ts'
import { openSqliteStore } from '../../src/sidecar/store/sqlite/store.ts'
import { VirtualClock } from '../support/clock.ts'
import { keepingLog, longestWaits } from '../support/ports.ts'

export const ERROR = 'The tool could not complete this request.'

export const SPEC: ToolSpec = {
  name: 'lookup',
  description: 'Finds',
  parameters: {},
  target: { kind: 'http', url: 'http://127.0.0.1:1/', secrets: { current: [] } },
  timeout: 30_000,
  concurrency: 8,
  retry: { attempts: 3, base: 250, max: 5000 },
  afterCrash: 'retry',
  error: ERROR,
  onNotDelivered: 'resend',
  deadline: null,
}

export const output = (text: string): ToolResult => ({ kind: 'output', output: text })

export function refusal(status: number, code: string, retryAfter: number | null = null): ServiceError {
  return new ServiceError({ status, code, message: `${code}!`, retryAfter })
}

/** Ends with an error, once `signal` is aborted. */
function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(refusal(0, 'aborted')))
  })
}

/** One session of the service, as far as calls are concerned: what waits, and what was answered to it. */
class FakeService {
  waiting = new Set<string>()
  gone = false
  authorized = true
  offset = 0
  /** What is open of it. */
  open = 1000
  answers: { callId: string; answer: Answer; key: string }[] = []
  messages: { text: string; key: string }[] = []
  /** What becomes of a posting; the default takes it and the action is gone. */
  reply: (callId: string) => Promise<string | null> | string | null = (callId) => {
    this.waiting.delete(callId)
    return 'delivered'
  }
  message: (text: string) => Promise<void> | void = () => undefined
  /** Whether it has an idempotency header. */
  idempotent = true
  /** The transcript, the newest item first. */
  items: JsonObject[] = []
  /** While none waits. */
  status = 'idle'

  /** Of the session. */
  metadata: Record<string, string> = {}
  /** Of each post of an answer. */
  traceparents: (string | undefined)[] = []

  /** A read has no answer. */
  hangs = false
  /** Instead of a reading. */
  unreachable: Error | null = null

  session(): Session | null {
    if (this.unreachable !== null) throw this.unreachable
    if (this.gone) return null
    const required_actions = [...this.waiting].map((call_id) => ({
      type: 'function_call',
      call_id,
      name: 'lookup',
    }))
    const status = required_actions.length > 0 ? 'requires_action' : this.status
    return readSession(
      { id: 'ses_1', status, updated_at: 1, metadata: this.metadata, required_actions },
      () => undefined,
    )
  }
}

/**
 * A tool host over a real store that outlives it, so that a crash is a new host on the same store. `path`: of the store;
 * absent: in memory.
 */
export function toolWorld(options: { spec?: Partial<ToolSpec>; path?: string } = {}) {
  const clock = new VirtualClock()
  const log = keepingLog()
  const store: Store = openSqliteStore({ path: options.path ?? ':memory:', clock, log })
  onTestFinished(() => store.close())
  const service = new FakeService()
  const runs: ToolCall[] = []
  const reports: CallReport[] = []
  const hints: Hint[] = []
  /** What went through which port, in order. */
  const trace: string[] = []
  const world = {
    clock,
    log,
    store,
    service,
    runs,
    reports,
    hints,
    trace,
    spec: { ...SPEC, ...options.spec },
    run: (async () => output('42')) as (call: ToolCall, signal: AbortSignal) => Promise<ToolResult>,
    nextCall: (room: CallRoom): Promise<number | null> => store.calls.nextDue(room),
    /** Called before each step of the ledger; one that never settles is a crash there. */
    beforeStep: async (_step: Step): Promise<void> => undefined,
    /** Whether this process owns the session. While it does not, it can claim none of its calls. */
    owns: true,
    /** Called before calls are written as new. */
    beforeAdd: async (): Promise<void> => undefined,
  }
  const port: Pick<
    Service,
    'answer' | 'sendMessage' | 'idempotent' | 'listItems' | 'clockOffset' | 'clockOpen' | 'authorized'
  > = {
    async answer(_, callId, answer, { key, maySend, traceparent }) {
      if (maySend?.() === false) throw refusal(0, 'superseded')
      trace.push('post')
      service.answers.push({ callId, answer, key })
      service.traceparents.push(traceparent)
      return await service.reply(callId)
    },
    async sendMessage(_, text, { key, maySend }) {
      if (maySend?.() === false) throw refusal(0, 'superseded')
      trace.push('message')
      await service.message(text)
      service.messages.push({ text, key })
    },
    idempotent: () => service.idempotent,
    async listItems(sessionId, { limit = 20, after }) {
      trace.push('items')
      const from = after === undefined ? 0 : service.items.findIndex(({ id }) => id === after) + 1
      const data = service.items.slice(from, from + limit).map((item) => readItem(item, sessionId))
      return { data, hasMore: from + limit < service.items.length, lastId: data.at(-1)?.id ?? null }
    },
    clockOffset: () => service.offset,
    clockOpen: () => service.open,
    authorized: () => service.authorized,
  }
  let revision: number | null = null
  let alive = 0
  /** What was ever claimed. */
  const claims = new Map<string, Lease>()

  const boot = (): ToolHost => {
    const incarnation = ++alive
    const dead = <T>(): Promise<T> => new Promise<T>(() => undefined)
    const whileAlive = <T>(run: () => Promise<T>): Promise<T> => (incarnation === alive ? run() : dead())
    const host: ToolHost = createToolHost(
      {
        service: port as Service,
        store: {
          ...store,
          shards: { ...store.shards, owns: () => world.owns },
          calls: {
            claim: (room) =>
              whileAlive(async () => {
                const found = world.owns ? await store.calls.claim(room) : []
                for (const { call, lease } of found) claims.set(call.callId, lease)
                return found
              }),
            get: (callId) => whileAlive(() => store.calls.get(callId)),
            nextDue: (room) => whileAlive(() => world.nextCall(room)),
            release: (callId, lease) => whileAlive(() => store.calls.release(callId, lease)),
          },
        },
        async add(calls) {
          if (incarnation !== alive) return await dead()
          await world.beforeAdd()
          const { newCalls } = await store.log.commit({ newCalls: calls })
          trace.push('add')
          for (const { callId, lease } of newCalls) if (lease !== null) claims.set(callId, lease)
          host.callsAdded(newCalls, calls)
        },
        async step(step) {
          if (incarnation !== alive) return await dead()
          await world.beforeStep(step)
          if (incarnation !== alive) return await dead()
          hints.push(...(step.hints ?? []))
          const { refused } = await store.log.commit({ calls: [step] })
          trace.push(`step ${step.event.type}`)
          return refused.length === 0
        },
        hint: async (more) => void hints.push(...more),
        observer: fanOut([{ call: (report) => reports.push(report) }]),
        clock,
        sessions: {
          read: async (_, signal) => {
            trace.push('read')
            if (service.hangs) await aborted(signal)
            return service.session()
          },
          summary: async () => ({ title: 'One', metadata: service.metadata, status: 'requires_action' }),
          traceOf: ({ sessionId: key }) => ({ given: undefined, key }),
        },
        tracer: plainTracer(longestWaits),
        random: longestWaits,
        log,
      },
      new Map([
        [
          world.spec.name,
          {
            spec: world.spec,
            run: async (call, signal) => {
              trace.push('run')
              runs.push(call)
              return await world.run(call, signal)
            },
          },
        ],
      ]),
    )
    host.start()
    return host
  }

  /** As a reading makes it. */
  const callAs = (callId: string): Call =>
    newCall({
      callId,
      sessionId: 'ses_1',
      turnId: 'trn_1',
      name: 'lookup',
      action: { arguments: { order: 42 } },
      createdAt: clock.now(),
      expiresAt: clock.now() + 600_000,
      receivedAt: clock.now(),
    })

  return Object.assign(world, {
    host: boot(),
    callAs,
    /** The process dies: nothing of it goes on, and a new one starts on what was stored. */
    async crash(): Promise<void> {
      alive++
      for (const [callId, lease] of claims) await store.calls.release(callId, lease)
      await clock.leap(1000)
      world.beforeStep = async () => undefined
      this.host = boot()
      await clock.settle()
    },
    /** A read found a waiting call; from then on the service may be unreachable. */
    async found(
      callId = 'call_1',
      more: Partial<Call> = {},
      unreachable: Error | null = null,
    ): Promise<void> {
      service.waiting.add(callId)
      const session = service.session()
      service.unreachable = unreachable
      const call: Call = { ...callAs(callId), ...more }
      const { newCalls } = await store.log.commit({
        readings: [
          {
            sessionId: 'ses_1',
            revision,
            session,
            baseline: 0,
            atRest: false,
            turns: [],
            opened: [],
            resolved: [],
            newCalls: [call],
            facts: [],
            at: clock.now(),
            hint: { claim: null, lookAfter: null, scope: 'session' },
          },
        ],
      })
      revision = (revision ?? 0) + 1
      this.host.callsAdded(newCalls, [])
      await clock.settle()
    },
    /** As a read does that finds calls and is not stored yet. */
    async takeOn(...calls: Call[]): Promise<void> {
      const session = {
        id: 'ses_1',
        title: 'One',
        status: 'requires_action',
        updated_at: 1,
        metadata: service.metadata,
        required_actions: [],
      }
      await this.host.takeOn(
        calls,
        readSession(session, () => undefined),
      )
    },
    call: async (callId = 'call_1') => {
      const call = await store.calls.get(callId)
      if (call === null) throw new Error(`there is no ${callId}`)
      return call
    },
    facts: async () => (await store.read.facts({ limit: 50, order: 'asc' })).rows.map(({ type }) => type),
  })
}
