import { backoff } from '../../std/backoff.ts'
import { BoundedMap } from '../../std/bounded-map.ts'
import { Slots } from '../../std/slots.ts'
import type { Subscriber } from '../../core/bus.ts'
import type { Call, CallRoom } from '../../core/call.ts'
import type { Lease } from '../../core/lease.ts'
import { summaryOf, type Session } from '../../core/resource.ts'
import { stageOf, transition } from '../../core/call-machine.ts'
import { messageOf } from '../../std/errors.ts'
import { forFunction, traceOf } from '../../core/tool.ts'
import { ServiceError } from '../../core/errors.ts'
import type { TraceSource } from '../../core/trace.ts'
import type { ShardTopics } from '../../core/shards.ts'
import { createPollLoop, type PollLoop } from '../../std/poll-loop.ts'
import type { Timer } from '../../std/ports.ts'
import { answerCall } from './answer.ts'
import { answerLater, awaitApp, type AnswerOutcome, type LateAnswer } from './late-answer.ts'
import {
  namesOf,
  REMOVED,
  type ActionState,
  type AnswerPolicy,
  type Progress,
  type Tool,
  type ToolPorts,
} from './context.ts'
import { closeGone, ledgerPorts, SUPERSEDED, type GivenPorts } from './ledger.ts'
import { giveUp, runBegun, runTool, withdraw } from './run.ts'

/**
 * A call that was read within this time may run without a further read, milliseconds (src/sidecar/README.md, Function
 * tools).
 */
const FRESH = 5000
/** The most call ids that this process remembers as its own; a forgotten one costs a read of its session. */
const REMEMBERED = 10_000
/** How often a call whose tool is not configured is checked; a later start may have the tool again. Milliseconds. */
const ORPHANED = 30_000
const RETRY = { base: 500, max: 60_000 }
/**
 * The longest time for which a read of a session waits for a tool that has just begun, milliseconds. The state facts of
 * the read come later by that time if the tool is slower.
 */
const HEAD_START = 3
/** How long an aborted run may take to store its outcome, milliseconds. */
const LEFT_BEHIND = 500

/** Calls in memory for each concurrent run of a tool; further calls stay in the store and hold up no other tool. */
const CALLS_PER_RUN = 2
/** The most calls in memory without a run: their results are posted. */
const POSTS = 256

/** Runs function tools and posts their results. */
export interface ToolHost
  extends
    Required<Pick<Subscriber, 'callsAdded' | 'actionsGone'>>,
    Pick<ShardTopics, 'gained' | 'lost' | 'woken'> {
  start(): void
  stop(grace: number): Promise<void>
  /**
   * Accepts calls that a read of `session` has just found: those that are new and get a slot are stored as running at
   * once.
   */
  takeOn(calls: readonly Call[], session: Session): Promise<void>
  /**
   * Waits until the tools of calls that were just accepted have run and their results are being posted, HEAD_START after
   * their begin at the latest. @returns whether each of `callIds` has a result that is being posted.
   */
  headStart(callIds: readonly string[]): Promise<boolean>
  /** Stores the late answer of the app to a call that its tool deferred with 202. */
  answer(callId: string, answer: LateAnswer): Promise<AnswerOutcome>
}

/** A call that is claimed. */
interface Hold {
  abort: AbortController
  lease: Lease
  /** Steps through these ports are refused once the lease has ended. */
  ports: ToolPorts
}

/** A run whose slot is held while its call is stored. */
interface Reserved {
  /** The call is stored: its tool runs. */
  begin(lease: Lease): void
  /** The call was not stored. */
  leave(): void
}

export function createToolHost(given: GivenPorts, configured: ReadonlyMap<string, Tool>): ToolHost {
  const { service, store, clock, random, log } = given
  const slots = createSlots(configured)
  /** By call: where the trace of its last run begins. */
  const origins = new BoundedMap<string, TraceSource>(REMEMBERED)
  const { ports, rest, postpone, ...ledger } = ledgerPorts(given, origins)
  const tools = notingOrigins(configured, origins)
  /** Calls under way, with the controller that aborts a run. */
  const active = new Map<string, AbortController>()
  /** Calls that this process accepted itself, with their sessions; any other may have been interrupted by a crash. */
  const ours = new Map<string, string>()
  const gone = new Map<string, 'resolved' | 'deleted'>()
  /** Calls that are being stored. */
  const adding = new Set<string>()
  /** By the object of the call that is being stored. */
  const reserved = new Map<Call, Reserved>()
  /** By call, from its acceptance on: whether its result is being posted at the end of its head start. */
  const headStarts = new Map<string, Promise<boolean>>()
  /** How many times in a row the progress of a call failed. */
  const failures = new Map<string, number>()
  const startedAt = clock.now()
  let idle: (() => void) | null = null

  const claim = async (): Promise<void> => {
    if (!pollLoop.running || !service.authorized() || rest.until > clock.steady()) return
    for (const { call, lease } of await store.calls.claim(room()))
      void drive(call, under(lease, hold(call.callId)))
  }

  const room = (): CallRoom => roomOf(slots, active.size, rest.trying ? 1 : Infinity)
  const pollLoop: PollLoop = createPollLoop({
    clock,
    pass: claim,
    // No claim while the token is rejected. Without room, the next call that ends wakes the loop.
    async next() {
      if (!service.authorized()) return null
      const rests = rest.until - clock.steady()
      return rests > 0 ? rests : await store.calls.nextDue(room())
    },
    onError: (error) => log.error({ err: error }, 'tools: the store could not be read'),
  })

  const hold = (callId: string): AbortController => {
    const abort = new AbortController()
    active.set(callId, abort)
    return abort
  }

  /** A read that hangs ends when another read has shown that the call is gone. */
  const isRequired = async (call: Call, signal: AbortSignal): Promise<ActionState> => {
    try {
      return await ledger.isRequired(call, signal)
    } catch (error) {
      const why = signal.aborted ? gone.get(call.callId) : undefined
      if (why === undefined) throw error
      return why
    }
  }

  const under = (lease: Lease, abort: AbortController): Hold => ({
    abort,
    lease,
    ports: {
      ...ports,
      step: (step) => ports.step({ ...step, lease }),
      keep: (step, over) => ports.keep({ ...step, lease }, over),
      isRequired: (call) => isRequired(call, abort.signal),
    },
  })

  /** Advances a call until it has to wait or ends. `begun`: its run that is under way. */
  const drive = async (first: Call, held: Hold, begun: Promise<Progress> | null = null): Promise<void> => {
    const { callId } = first
    const { abort, lease } = held
    let call = first
    let step = begun
    try {
      while (pollLoop.running || step !== null) {
        const progress: Progress = await (step ?? advance(call, held))
        step = null
        if (progress.kind !== 'due' || progress.at > clock.steady()) break
        call = progress.call
      }
      failures.delete(callId)
    } catch (error) {
      if (!pollLoop.running) return
      const count = (failures.get(callId) ?? 0) + 1
      failures.set(callId, count)
      const asked = error instanceof ServiceError ? error.retryAfter : null
      const wait = backoff(RETRY, count, random, asked ?? RETRY.base)
      if (await postpone({ callId, lease }, wait)) {
        log.warn(
          { ...namesOf(ports, first), error: messageOf(error), wait },
          'tools: a call could not be continued',
        )
      }
    } finally {
      await store.calls.release(callId, lease)
      await letGo(callId, abort)
    }
    pollLoop.wake()
  }

  /** The call may have been claimed from the ledger meanwhile, under another controller: then it stays active. */
  const letGo = async (callId: string, abort: AbortController): Promise<void> => {
    if (active.get(callId) !== abort) return
    active.delete(callId)
    await settleGone(callId)
    if (active.size === 0) idle?.()
  }

  const advance = async (call: Call, held: Hold): Promise<Progress> => {
    const why = gone.get(call.callId)
    if (why !== undefined) return await closeOver(held.ports, call, why)
    const tool = forFunction(tools, call.name)
    switch (stageOf(call)) {
      case 'received':
        return tool === undefined ? await orphaned(call, held) : await enter(tool, call, held)
      case 'running':
        return tool === undefined ? await orphaned(call, held) : await runAgain(tool, call, held)
      case 'deferred':
        if (tool === undefined) return await orphaned(call, held)
        return await awaitApp(held.ports, tool, call, !ours.has(call.callId))
      case 'finished':
      case 'unconfirmed':
      case 'refused':
      case 'refused_unconfirmed':
      case 'accepted':
      case 'undelivered':
      case 'resent':
        return await post(held.ports, tool?.spec ?? REMOVED, call)
      case 'answered':
      case 'not_delivered':
      case 'failed':
        return { kind: 'closed' }
    }
  }

  const take = ({ callId, sessionId }: Call): void => {
    if (ours.size >= REMEMBERED) ours.clear()
    ours.set(callId, sessionId)
  }

  /**
   * A post whose outcome could not be stored may have been accepted: the call counts as ours again only when its
   * outcome is stored.
   */
  const post = async (by: ToolPorts, policy: AnswerPolicy, call: Call): Promise<Progress> => {
    const restarted = !ours.delete(call.callId)
    const progress = await answerCall(by, policy, call, restarted)
    if (progress.kind === 'due') take(call)
    return progress
  }

  /** Runs a call if it was read recently; otherwise it is first read again. */
  const enter = async (tool: Tool, call: Call, held: Hold): Promise<Progress> => {
    take(call)
    const run = async (): Promise<Progress> => {
      // A read may have found, while the call waited for its slot, that the service no longer requires it.
      if (!pollLoop.running || held.abort.signal.aborted) return SUPERSEDED
      return (await isWanted(held.ports, call, stageOf(call) === 'running'))
        ? await runTool(held.ports, tool, call, held.abort.signal)
        : SUPERSEDED
    }
    return (await forFunction(slots, call.name)?.run(run)) ?? SUPERSEDED
  }

  /**
   * Whether this process found the call, and recently; setting the wall clock back does not make a call fresh again.
   */
  const isFresh = ({ receivedAt }: Call): boolean => {
    const age = clock.now() - receivedAt
    return receivedAt >= startedAt && age >= 0 && age < FRESH
  }

  /**
   * Whether the call may run. Reads it again when it is not fresh or a crash interrupted it; closes it when it is over.
   */
  const isWanted = async (by: ToolPorts, call: Call, cutShort: boolean): Promise<boolean> => {
    if (!cutShort && isFresh(call)) return true
    const state = await by.isRequired(call)
    if (state !== 'required') await closeGone(by, call, state, !ours.has(call.callId))
    return state === 'required'
  }

  /** Takes a slot of the tool for a call, held while the call is stored. @returns the call as it is to be stored. */
  const reserve = (call: Call, session: Session): Call => {
    const tool = forFunction(tools, call.name)
    const free = forFunction(slots, call.name)
    const running = transition(call, { type: 'run_begun', at: clock.now() })
    if (tool === undefined || running === null || active.has(call.callId)) return call
    if (!store.shards.owns(call.sessionId)) return call
    if (!pollLoop.running || !service.authorized() || free?.take() !== true) return call
    const abort = hold(call.callId)
    const end = (): void => {
      reserved.delete(running)
      free.free()
    }
    const headStart = addHeadStart(call.callId)
    const run = async (by: ToolPorts): Promise<Progress> => {
      if (!pollLoop.running || abort.signal.aborted) return await withdraw(by, running)
      try {
        if (!isFresh(running) && !(await isWanted(by, running, false))) return SUPERSEDED
      } catch (error) {
        // The session could not be read: the tool has not run, and no crash interrupted it.
        await withdraw(by, running)
        throw error
      }
      return await runBegun(by, tool, { call: running, session: summaryOf(session) }, abort.signal)
    }
    reserved.set(running, {
      begin(lease) {
        reserved.delete(running)
        take(call)
        const held = under(lease, abort)
        headStart.limit()
        const begun = run(held.ports).finally(end)
        begun
          .then((progress) => progress.kind === 'due' && stageOf(progress.call) === 'finished')
          // Unless the sidecar stops, a stored result is posted in this pass of the event loop.
          .then((isStored) => clock.soon(() => headStart.end(isStored)))
          .catch(() => headStart.end(false))
        void drive(running, held, begun)
      },
      leave() {
        end()
        headStart.end(false)
        void letGo(call.callId, abort)
      },
    })
    return running
  }

  const addHeadStart = (callId: string): { limit(): void; end(isPosted: boolean): void } => {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    headStarts.set(callId, promise)
    let timer: Timer | null = null
    const end = (isPosted: boolean): void => {
      timer?.cancel()
      headStarts.delete(callId)
      resolve(isPosted)
    }
    return { limit: () => void (timer = clock.after(HEAD_START, () => end(false))), end }
  }

  /** Handles a run that a crash interrupted. */
  const runAgain = async (tool: Tool, call: Call, held: Hold): Promise<Progress> => {
    log.warn({ ...namesOf(ports, call), policy: tool.spec.afterCrash }, 'tools: a crash interrupted a run')
    if (tool.spec.afterCrash === 'fail')
      return await giveUp(held.ports, tool.spec, call, 'a crash interrupted the run')
    return await enter(tool, call, held)
  }

  /** Handles a call whose tool is no longer configured. */
  const orphaned = async (call: Call, { ports: by, lease }: Hold): Promise<Progress> => {
    const state = await by.isRequired(call)
    if (state !== 'required') return await closeGone(by, call, state, !ours.has(call.callId))
    log.warn(namesOf(ports, call), 'tools: a call waits for a tool that is no longer configured')
    await postpone({ callId: call.callId, lease }, ORPHANED)
    return SUPERSEDED
  }

  const settleGone = async (callId: string): Promise<void> => {
    const why = gone.get(callId)
    if (why === undefined || adding.has(callId)) return
    try {
      const call = await store.calls.get(callId)
      if (call !== null && call.endedAt === null) await closeOver(ports, call, why)
      gone.delete(callId)
    } catch (error) {
      log.warn({ call: callId, error: messageOf(error) }, 'tools: a call that has ended could not be closed')
    }
  }

  /** Closes a call that the service no longer requires. Nothing else is done with the call until that is stored. */
  const closeOver = async (by: ToolPorts, call: Call, why: 'resolved' | 'deleted'): Promise<Progress> => {
    const progress = await closeGone(by, call, why, !ours.has(call.callId))
    gone.delete(call.callId)
    failures.delete(call.callId)
    // A call whose follow-up message is not sent yet stays open. It also remains ours, because this process knows
    // whether the reply to a message was lost.
    if (why === 'deleted' || call.outcome !== 'not_delivered') ours.delete(call.callId)
    return progress
  }

  return {
    start: () => pollLoop.start(),
    async stop(grace) {
      pollLoop.stop()
      if (active.size === 0) return
      const { promise, resolve } = Promise.withResolvers<void>()
      idle = resolve
      let limit = clock.after(grace, () => {
        for (const abort of active.values()) abort.abort()
        // A run that waits for the service is abandoned: the next start continues from the ledger.
        limit = clock.after(LEFT_BEHIND, resolve)
      })
      await promise
      limit.cancel()
    },
    callsAdded(added, written) {
      const leases = new Map(added.map(({ callId, lease }) => [callId, lease]))
      for (const call of written) {
        const lease = leases.get(call.callId)
        if (lease !== undefined && lease !== null) reserved.get(call)?.begin(lease)
      }
      if (added.some(({ lease }) => lease === null)) pollLoop.wake()
    },
    async takeOn(found, session) {
      const known = await Promise.all(found.map(({ callId }) => store.calls.get(callId)))
      const calls = found.filter(({ callId }, index) => known[index] === null && !active.has(callId))
      if (calls.length === 0) return
      const written = calls.map((call) => reserve(call, session))
      for (const { callId } of calls) adding.add(callId)
      try {
        await ports.add(written)
      } finally {
        for (const call of written) reserved.get(call)?.leave()
        for (const { callId } of calls) {
          adding.delete(callId)
          if (!active.has(callId)) void settleGone(callId)
        }
      }
    },
    async headStart(callIds) {
      const posted = await Promise.all(callIds.flatMap((callId) => headStarts.get(callId) ?? []))
      return posted.length === callIds.length && posted.every((isPosted) => isPosted)
    },
    actionsGone(callIds, why) {
      for (const callId of callIds) {
        gone.set(callId, why)
        const abort = active.get(callId)
        // A post under way ends by itself; a run is aborted.
        if (abort === undefined) void settleGone(callId)
        else abort.abort()
      }
    },
    gained: () => pollLoop.wake(),
    lost() {
      // If the shard of the session comes back later, another process may have run the call meanwhile.
      for (const [callId, sessionId] of ours) {
        if (store.shards.owns(sessionId)) continue
        ours.delete(callId)
        origins.delete(callId)
      }
    },
    woken({ topics }) {
      if (topics.has('calls')) pollLoop.wake()
    },
    async answer(callId, answer) {
      const outcome = await answerLater(ports, tools, callId, answer)
      if (outcome === 'accepted') pollLoop.wake()
      return outcome
    },
  }
}

/** A session may get another `traceparent` while a tool runs: the answer of the call still belongs to the trace of the run. */
function notingOrigins(
  tools: ReadonlyMap<string, Tool>,
  origins: BoundedMap<string, TraceSource>,
): ReadonlyMap<string, Tool> {
  const noting = ({ spec, run }: Tool): Tool => ({
    spec,
    run(call, signal) {
      origins.set(call.callId, traceOf(call))
      return run(call, signal)
    },
  })
  return new Map([...tools].map(([name, tool]) => [name, noting(tool)]))
}

/** The runs of each tool, up to its concurrency. */
function createSlots(tools: ReadonlyMap<string, Tool>): ReadonlyMap<string, Slots> {
  return new Map([...tools.values()].map(({ spec }) => [spec.name, new Slots(spec.concurrency)]))
}

/**
 * The room for calls from the ledger. `active`: calls in memory; `most`: the limit for each tool, and for all calls that
 * need no run.
 */
function roomOf(slots: ReadonlyMap<string, Slots>, active: number, most: number): CallRoom {
  const toRun = [...slots.values()].reduce((sum, { wanted }) => sum + wanted, 0)
  const others = Math.min(most, POSTS - (active - toRun))
  return {
    others,
    of(name) {
      const tool = forFunction(slots, name)
      // The tool is not configured: the call waits for no run.
      return tool === undefined ? others : Math.min(most, tool.size * CALLS_PER_RUN - tool.wanted)
    },
  }
}
