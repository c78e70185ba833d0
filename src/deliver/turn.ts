import type PQueue from 'p-queue'
import type { Attempt, PendingDelivery } from '../core/delivery.ts'
import type { StoredFact } from '../core/fact.ts'
import type { HandlerSpec } from '../core/handler.ts'
import { pause } from '../core/pause.ts'
import type { Clock } from '../core/ports.ts'
import type { SessionBrief } from '../core/resource.ts'
import type { Store } from '../core/store.ts'
import type { Briefs } from './briefs.ts'
import type { HandlerHealth } from './health.ts'
import type { ActiveLane } from './lane.ts'
import { numberOf, type Recorder } from './record.ts'
import type { Settler } from './settler.ts'
import type { Outgoing, Target } from './target.ts'
import { attemptOf } from './verdict.ts'

/** Attempts that a lane makes in one turn while others wait for a place. */
const TURN = 16

/** Lanes take turns at the places of their handler. */
export interface Turns {
  /** Waits for a place and attempts what `lane` has at hand. @returns when it is due again, if it has to wait. */
  take(lane: ActiveLane): Promise<number | undefined>
}

export function createTurns(options: {
  spec: HandlerSpec
  target: Target
  store: Pick<Store, 'pauseHandler' | 'beginAttempts' | 'endAttempts' | 'dropAttempts'>
  settler: Settler
  briefs: Briefs
  clock: Clock
  /** The places. */
  queue: PQueue
  health: HandlerHealth
  recorder: Recorder
  /** Nothing more is waited for. */
  closing: AbortSignal
  /** What is under way is left behind. */
  stop: AbortSignal
  mayGoOn: () => boolean
  /** The handler answers again. */
  onBack: () => void
}): Turns {
  const { spec, target, store, settler, briefs, clock, queue, health, recorder, closing, stop, mayGoOn } =
    options
  const { max, wait } = target.batches ? spec.batch : { max: 1, wait: 0 }

  /** Attempts one after the other, while the lane has something at hand and nobody has waited for long. */
  const turn = async (active: ActiveLane): Promise<number | undefined> => {
    for (let taken = 0; mayGoOn() && (taken < TURN || queue.size === 0); taken++) {
      // What cannot be written down would only be sent twice.
      if (settler.refused !== null) return undefined
      // Lanes that were waiting their turn when the handler went down wait in the store.
      if (health.state === 'down' && !active.probe) return clock.steady()
      const first = active.first()
      if (first === undefined || (taken > 0 && (wait > 0 || lacksBrief(first.fact)))) return undefined
      const batch = max === 1 ? [first] : active.head(max)
      const dueAt = await attempt(active, batch, briefOf(active, first.fact))
      if (dueAt !== undefined) return dueAt
    }
    return undefined
  }

  /** State facts carry what was read of their session; the others get what we know of it. */
  const lacksBrief = (fact: StoredFact): boolean =>
    fact.family === 'transcript' && fact.sessionId !== null && briefs.peek(fact.sessionId) === undefined

  const findBrief = async (active: ActiveLane, { sessionId, at }: StoredFact): Promise<void> => {
    if (sessionId !== null) active.brief = await briefs.find(sessionId, at, closing)
  }

  const briefOf = (active: ActiveLane, { family, sessionId }: StoredFact): SessionBrief | null =>
    family === 'state' || sessionId === null ? null : (briefs.peek(sessionId) ?? active.brief)

  const attempt = async (
    active: ActiveLane,
    batch: readonly PendingDelivery[],
    session: SessionBrief | null,
  ): Promise<number | undefined> => {
    const at = clock.now()
    const started = clock.steady()
    const outgoing = batch.map((delivery): Outgoing => ({
      fact: delivery.fact,
      attempt: numberOf(delivery),
      session,
    }))
    const positions = batch.map(({ fact }) => fact.pos)
    store.beginAttempts(active.lane, positions)
    let verdict = await target.send(outgoing, stop)
    // A connection that was kept open may have been closed by the other side just then.
    if (verdict.kind === 'unreachable' && verdict.reset && health.state !== 'paused')
      verdict = await target.send(outgoing, stop)
    if (verdict.kind === 'aborted' || stop.aborted) return undefined
    store.endAttempts(active.lane)
    verdict = health.weigh(verdict, batch[0]?.fact.pos ?? 0)
    const tried = attemptOf(verdict, at, clock.steady() - started)
    if (verdict.kind === 'unreachable' || verdict.kind === 'gone') store.dropAttempts(active.lane, positions)
    if (verdict.kind === 'unreachable') return unreachable(batch, tried)
    if (health.answered()) options.onBack()
    switch (verdict.kind) {
      case 'delivered':
        active.drop(batch.length)
        recorder.settle(active, batch, 'delivered', tried)
        return undefined
      case 'dead':
        active.drop(batch.length)
        recorder.bury(active, batch, tried)
        return undefined
      case 'gone':
        await pauseSelf('the handler answered 410')
        recorder.report(batch, 'paused', tried)
        return clock.steady()
      case 'retry':
        health.become(health.state, tried.error ?? `status ${tried.status}`)
        return recorder.retry(active, batch, tried, verdict.floor)
    }
  }

  const unreachable = (batch: readonly PendingDelivery[], tried: Attempt): number => {
    recorder.report(batch, 'unreachable', tried)
    health.unreachable(tried.error ?? null)
    // The lane goes to the end of the queue, so that another one is the next probe.
    return clock.steady()
  }

  const pauseSelf = async (reason: string): Promise<void> => {
    // One that was under way when the handler said so says nothing new: whoever resumes it meanwhile is to be heard.
    if (health.state === 'paused') return
    health.become('paused', reason)
    await store.pauseHandler(spec.name, reason)
  }

  return {
    async take(active) {
      if (settler.refused !== null) await settler.refused
      if (max > 1 && wait > 0 && active.size < max) await pause(clock, wait, closing)
      const first = active.first()
      // A session that was not read yet is waited for before the lane takes a place from the others.
      if (first !== undefined && lacksBrief(first.fact)) await findBrief(active, first.fact)
      return await queue.add(() => turn(active))
    },
  }
}
