import { backoff } from '../../std/backoff.ts'
import type { Subscriber } from '../../core/bus.ts'
import type { Call, CallRoom } from '../../core/call.ts'
import { messageOf } from '../../std/errors.ts'
import { ServiceError } from '../../core/errors.ts'
import type { Clock } from '../../std/ports.ts'
import type { Batch } from '../../core/store.ts'
import { createPollLoop, type PollLoop } from '../../std/poll-loop.ts'
import { answerCall } from './answer.ts'
import { closeGone } from './ending.ts'
import { answerLater, awaitApp, type AnswerOutcome, type LateAnswer } from './late-answer.ts'
import { isRequired, REMOVED, type AnswerPolicy, type Place, type Tool } from './context.ts'
import { beginRun, unbeginRun, type Step } from './ledger.ts'
import { createQueues } from './queues.ts'
import { breakingPorts, type GivenPorts } from './breaking-ports.ts'
import { giveUp, runBegun, runTool } from './run.ts'
import { namesOf } from './trace.ts'

/** A reading older than this does not allow a run any more, milliseconds (README, Function tools). */
const FRESH = 5000
/** Calls of which we remember that this process took them on; forgetting one costs a reading of its session. */
const REMEMBERED = 10_000
/** A call whose tool is not configured is looked at so often: a later start may have it again. Milliseconds. */
const ORPHANED = 30_000
const RETRY = { base: 500, max: 60_000 }
/** What was told to stop has so long to write down what came of it, milliseconds. */
const LEFT_BEHIND = 500

/** Runs function tools and posts their results. */
export interface ToolHost extends Required<Pick<Subscriber, 'callsAdded' | 'actionsGone'>> {
  start(): void
  stop(grace: number): Promise<void>
  /** Takes on calls that a reading found just now: those that have a place to run are written as running, in one step. */
  takeOn(calls: readonly Call[]): Promise<void>
  /** The app answers a call that its tool put off with 202. */
  answer(callId: string, answer: LateAnswer): Promise<AnswerOutcome>
}

/** A step as the store takes it: what is left until it is due. */
export function storedStep(
  { set: { dueAt, ...set }, ...step }: Step,
  clock: Clock,
): NonNullable<Batch['calls']>[number] {
  return { ...step, set, ...(dueAt === undefined ? {} : { after: Math.max(0, dueAt - clock.steady()) }) }
}

export function createToolHost(given: GivenPorts, tools: ReadonlyMap<string, Tool>): ToolHost {
  const { service, store, clock, random, log } = given
  const queues = createQueues(tools)
  const { ports, rest, postpone } = breakingPorts(given)
  /** Calls under way, with what stops a run. */
  const active = new Map<string, AbortController>()
  /** Calls that this process took on and knows all about: of the others we do not know what a crash cut short. */
  const ours = new Set<string>()
  const gone = new Map<string, 'resolved' | 'deleted'>()
  /** How often in a row a call could not be taken further. */
  const failures = new Map<string, number>()
  const startedAt = clock.now()
  let idle: (() => void) | null = null

  const claim = async (): Promise<void> => {
    if (!pollLoop.running || !service.authorized() || rest.until > clock.steady()) return
    for (const call of await store.calls.claim(room())) void drive(call, hold(call.callId))
  }

  const room = (): CallRoom => queues.room(active.size, rest.trying ? 1 : Infinity)
  const pollLoop: PollLoop = createPollLoop({
    clock,
    pass: claim,
    // Nothing is taken with a rejected token, nor where there is no room: the first call that ends wakes it.
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

  /** Takes a call as far as it goes now. `begun`: a run of it that is under way. */
  const drive = async (
    first: Call,
    abort: AbortController,
    begun: Promise<number | null> | null = null,
  ): Promise<void> => {
    const { callId } = first
    let call: Call | null = first
    let step = begun
    try {
      while ((pollLoop.running || step !== null) && call !== null && call.endedAt === null) {
        const dueAt: number | null = await (step ?? advance(call, abort))
        step = null
        if (dueAt === null || dueAt > clock.steady()) break
        call = await store.calls.get(callId)
      }
      failures.delete(callId)
    } catch (error) {
      if (!pollLoop.running) return
      const count = (failures.get(callId) ?? 0) + 1
      failures.set(callId, count)
      const asked = error instanceof ServiceError ? error.retryAfter : null
      const wait = backoff(RETRY, count, random, asked ?? RETRY.base)
      if (await postpone(callId, wait)) {
        log.warn(
          { ...namesOf(ports, first), error: messageOf(error), wait },
          'tools: a call could not be taken further',
        )
      }
    } finally {
      await store.calls.release(callId)
      await letGo(callId, abort)
    }
    pollLoop.wake()
  }

  /** A call that a reading took for new may have been taken from the ledger meanwhile: then it is not ours to let go. */
  const letGo = async (callId: string, abort: AbortController): Promise<void> => {
    if (active.get(callId) !== abort) return
    active.delete(callId)
    await settleGone(callId)
    if (active.size === 0) idle?.()
  }

  const advance = async (call: Call, abort: AbortController): Promise<number | null> => {
    const why = gone.get(call.callId)
    if (why !== undefined) return await closeOver(call, why)
    const tool = tools.get(call.name)
    if (call.state === 'finished') return await post(tool?.spec ?? REMOVED, call)
    if (tool === undefined) return await orphaned(call)
    switch (call.state) {
      case 'received':
        return await enter(tool, call, false, abort)
      case 'running':
        return await resume(tool, call, abort)
      case 'answered':
      case 'not_delivered':
      case 'failed':
        return null
    }
  }

  const take = (callId: string): void => {
    if (ours.size >= REMEMBERED) ours.clear()
    ours.add(callId)
  }

  /** A posting of which nothing could be noted may have been taken: the call is ours again only when it was noted. */
  const post = async (policy: AnswerPolicy, call: Call): Promise<number | null> => {
    const restarted = !ours.delete(call.callId)
    const dueAt = await answerCall(ports, policy, call, restarted)
    if (dueAt !== null) take(call.callId)
    return dueAt
  }

  /** The reading that found a call allows it to run while it is fresh; otherwise the service is asked again. */
  const enter = async (
    tool: Tool,
    call: Call,
    again: boolean,
    abort: AbortController,
  ): Promise<number | null> => {
    take(call.callId)
    const queue = queues.of(call.name)
    if (queue === undefined) return null
    const ran = queue.add(async () => {
      // While it waited for its turn a reading may have found that nobody waits for it any more.
      if (!pollLoop.running || abort.signal.aborted) return null
      return (await isWanted(call, again)) ? await runTool(ports, tool, call, again, abort.signal) : null
    })
    return (await ran) ?? null
  }

  /** Whether this process found the call, and just now; a wall clock that was set back makes nothing young again. */
  const isFresh = ({ receivedAt }: Call): boolean => {
    const age = clock.now() - receivedAt
    return receivedAt >= startedAt && age >= 0 && age < FRESH
  }

  /** Asks the service where the reading that found a call is too old, or a crash came after it. Closes what is over. */
  const isWanted = async (call: Call, again: boolean): Promise<boolean> => {
    if (!again && isFresh(call)) return true
    const state = await isRequired(ports, call)
    if (state !== 'required') await closeGone(ports, call, state, !ours.has(call.callId))
    return state === 'required'
  }

  /** A call's place among the runs of its tool, held while the call is written down; null when it has to wait for one. */
  const place = (call: Call): Place | null => {
    const tool = tools.get(call.name)
    const queue = queues.free(call.name)
    if (tool === undefined || queue === null || active.has(call.callId)) return null
    if (!pollLoop.running || !service.authorized()) return null
    const running: Call = { ...call, ...beginRun(call, clock.now(), false).set }
    const abort = hold(call.callId)
    const { promise: written, resolve: settle } = Promise.withResolvers<boolean>()
    const run = queue.add(async () => {
      if (!(await written)) return null
      if (pollLoop.running && !abort.signal.aborted) {
        return (await isWanted(running, false)) ? await runBegun(ports, tool, running, abort.signal) : null
      }
      await ports.step(unbeginRun(running, clock.steady()))
      return null
    })
    return {
      running,
      begin() {
        take(call.callId)
        settle(true)
        void drive(running, abort, run)
      },
      leave() {
        settle(false)
        void letGo(call.callId, abort)
      },
    }
  }

  /** A call that was running: put off by its tool, or cut short by a crash. */
  const resume = async (tool: Tool, call: Call, abort: AbortController): Promise<number | null> => {
    if (call.deferred) return await awaitApp(ports, tool, call, !ours.has(call.callId))
    log.warn({ ...namesOf(ports, call), policy: tool.spec.afterCrash }, 'tools: a run was cut short')
    if (tool.spec.afterCrash === 'fail') return await giveUp(ports, tool.spec, call, 'cut short by a crash')
    return await enter(tool, call, true, abort)
  }

  /** The tool is not configured any more. */
  const orphaned = async (call: Call): Promise<number | null> => {
    const state = await isRequired(ports, call)
    if (state !== 'required') return await closeGone(ports, call, state, !ours.has(call.callId))
    log.warn(namesOf(ports, call), 'tools: a call waits for a tool that is not configured any more')
    await postpone(call.callId, ORPHANED)
    return null
  }

  const settleGone = async (callId: string): Promise<void> => {
    const why = gone.get(callId)
    if (why === undefined) return
    try {
      const call = await store.calls.get(callId)
      if (call !== null && call.endedAt === null) await closeOver(call, why)
      gone.delete(callId)
    } catch (error) {
      log.warn({ call: callId, error: messageOf(error) }, 'tools: a call that is over could not be closed')
    }
  }

  /** Until its end is written, nothing else is done with a call that nobody waits for. */
  const closeOver = async (call: Call, why: 'resolved' | 'deleted'): Promise<null> => {
    await closeGone(ports, call, why, !ours.has(call.callId))
    gone.delete(call.callId)
    failures.delete(call.callId)
    // A call whose fresh turn is still to be sent stays open: we know whether a message of it is without a reply.
    if (why === 'deleted' || call.outcome !== 'not_delivered') ours.delete(call.callId)
    return null
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
        // A run that waits for the service is abandoned: the next start goes on from the ledger.
        limit = clock.after(LEFT_BEHIND, resolve)
      })
      await promise
      limit.cancel()
    },
    callsAdded: () => pollLoop.wake(),
    async takeOn(calls) {
      const places = new Map<string, Place>()
      for (const call of calls) {
        const free = place(call)
        if (free !== null) places.set(call.callId, free)
      }
      let added: ReadonlySet<string> = new Set()
      try {
        added = await ports.add(calls.map((call) => places.get(call.callId)?.running ?? call))
      } finally {
        for (const [callId, held] of places) {
          if (added.has(callId)) held.begin()
          else held.leave()
        }
      }
    },
    actionsGone(callIds, why) {
      for (const callId of callIds) {
        gone.set(callId, why)
        const abort = active.get(callId)
        // A posting under way decides for itself; a run has nobody left to run for.
        if (abort === undefined) void settleGone(callId)
        else abort.abort()
      }
    },
    async answer(callId, answer) {
      const outcome = await answerLater(ports, tools, callId, answer)
      if (outcome === 'accepted') pollLoop.wake()
      return outcome
    },
  }
}
