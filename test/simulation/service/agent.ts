import type { Agenda } from '../agenda.ts'
import type { Chance } from '../chance.ts'
import { OURS, type Belonging } from '../scope.ts'
import { PLAIN, STRANGER, type CallPlan, type SessionPlan, type Step, type TurnPlan } from '../scenario.ts'
import type { ModelAction, ModelCall, ModelSession, ModelTurn, ServiceState } from './state.ts'

/** Queued messages of one session. */
const QUEUE_MAX = 5
/** Seconds. */
const UNANSWERABLE = 20
/** `turn.completed` waits so long for the artifacts, milliseconds. */
const NOTICE_WAIT = 30_000

/** Works through the turns of all sessions. */
export class Agent {
  readonly #agenda: Agenda
  readonly #chance: Chance
  readonly #state: ServiceState

  constructor(agenda: Agenda, chance: Chance, state: ServiceState) {
    this.#agenda = agenda
    this.#chance = chance
    this.#state = state
  }

  create(plan: SessionPlan, { fate, metadata, createdBy }: Belonging = OURS): ModelSession {
    const now = this.#state.now()
    const session: ModelSession = {
      id: this.#state.id('5e55-'),
      status: 'idle',
      createdAt: now,
      updatedAt: now,
      actions: [],
      turns: [],
      items: [],
      artifacts: [],
      queue: [],
      busy: false,
      deleted: false,
      deletedAt: null,
      missed: false,
      metadata,
      createdBy,
      fate,
    }
    this.#state.sessions.set(session.id, session)
    this.#state.onNotice('session.created', session, null)
    this.#state.emit('sandbox.created', session, null, {})
    for (const { at, turn } of plan.messages) this.#agenda.in(at, () => void this.message(session, turn))
    if (plan.deleted !== null) this.#agenda.in(plan.deleted, () => this.delete(session))
    return session
  }

  /** Turns under way and artifacts being collected. */
  get underWay(): boolean {
    return this.#state
      .alive()
      .some(({ busy, turns }) => busy || turns.some(({ artifacts }) => artifacts === 'pending'))
  }

  /** PATCH: whose it is changes. */
  patch(session: ModelSession, { metadata }: Pick<Belonging, 'metadata'>): void {
    if (session.deleted) return
    session.metadata = metadata
    this.#state.touch(session)
  }

  delete(session: ModelSession): void {
    session.deleted = true
    session.deletedAt = this.#agenda.now
    for (const { call } of session.actions) if (call !== null) this.#gone(call)
    session.actions = []
    session.queue = []
  }

  /** @returns false when the queue is full. */
  message(session: ModelSession, plan: TurnPlan = PLAIN): boolean {
    if (session.deleted) return false
    if (session.busy) {
      if (session.queue.length >= QUEUE_MAX) return false
      session.queue.push(plan)
      this.#state.emit('message.queued', session, null, {})
      return true
    }
    this.#begin(session, plan)
    return true
  }

  #begin(session: ModelSession, plan: TurnPlan): void {
    session.busy = true
    this.#state.emit('user.message', session, null, {}, 'message', plan.text)
    this.#state.become(session, 'working')
    this.#later(session, this.#chance.int(1, 150), () => {
      if (plan.startFails) {
        this.#state.emit('agent.error', session, null, { reason: 'no workspace' }, 'error')
        this.#end(session, 'failed')
      } else this.#open(session, plan)
    })
  }

  #open(session: ModelSession, plan: TurnPlan): void {
    const now = this.#state.now()
    const turn: ModelTurn = {
      id: this.#state.id('turn_'),
      sessionId: session.id,
      status: 'working',
      createdAt: now,
      startedAt: now,
      completedAt: null,
      artifacts: null,
      settledAt: null,
      skipped: [],
      plan,
    }
    session.turns.push(turn)
    this.#state.emit('turn.started', session, turn.id, {})
    this.#step(session, turn, 0)
  }

  /** Steps of all turns that were begun. */
  steps = 0

  #step(session: ModelSession, turn: ModelTurn, index: number): void {
    this.#later(session, this.#chance.pick([1, 20, 120, 700]), () => {
      this.steps++
      const step = turn.plan.steps[index]
      if (step === undefined) return this.#finish(session, turn)
      this.#do(session, turn, step, () => this.#step(session, turn, index + 1))
    })
  }

  #do(session: ModelSession, turn: ModelTurn, step: Step, next: () => void): void {
    const state = this.#state
    switch (step.do) {
      case 'say':
        state.emit('agent.message', session, turn.id, { text: 'Hello' }, 'message')
        return next()
      case 'think':
        for (const delta of ['H', 'm']) state.transient('agent.text', session, turn.id, { delta })
        return next()
      case 'shout':
        for (let made = 0; made < step.deltas; made++)
          state.transient('agent.text', session, turn.id, { delta: 'A' })
        return next()
      case 'notice':
        state.emit('organization.notice', null, null, { text: 'new' })
        state.emit('agent.todos', session, turn.id, {}, 'todo')
        return next()
      case 'wait':
        return this.#later(session, step.ms, next)
      case 'person':
        return this.#askPerson(session, turn, step, next)
      case 'call':
        return this.#call(session, turn, step.calls, next)
    }
  }

  #askPerson(
    session: ModelSession,
    turn: ModelTurn,
    { kind, after }: Extract<Step, { do: 'person' }>,
    next: () => void,
  ): void {
    const action = this.#require(session, turn, kind, null, null)
    const [asked, answered] =
      kind === 'approval'
        ? ['approval.requested', 'approval.resolved']
        : ['question.asked', 'question.answered']
    this.#state.emit(asked ?? '', session, turn.id, { call_id: action.callId })
    this.#state.become(session, 'requires_action')
    this.#later(session, after, () => {
      session.actions = session.actions.filter((other) => other !== action)
      this.#state.emit(answered ?? '', session, turn.id, { call_id: action.callId })
      this.#resume(session, next)
    })
  }

  #call(session: ModelSession, turn: ModelTurn, plans: readonly CallPlan[], next: () => void): void {
    for (const plan of plans) {
      const callId = this.#state.id('call_')
      const call: ModelCall = {
        callId,
        sessionId: session.id,
        turnId: turn.id,
        plan,
        taken: null,
        expiresAt: null,
        notDelivered: false,
        forsaken: false,
        refused: false,
        goneAt: null,
      }
      this.#state.calls.set(callId, call)
      const action = this.#require(session, turn, 'function_call', call, this.#deadlineOf(plan))
      call.expiresAt = action.expiresAt
      this.#state.emit('agent.tool_call', session, turn.id, { toolName: plan.tool, args: {} }, 'tool_call')
      this.#state.emit('tool.required', session, turn.id, { call_id: callId, name: plan.tool, arguments: {} })
      const over = (): void => this.close(session, call)
      if (action.expiresAt !== null) this.#later(session, action.expiresAt - action.createdAt, over)
      // Another program answers.
      if (plan.tool === STRANGER || session.fate !== 'ours') this.#later(session, 3000, over)
    }
    this.#state.become(session, 'requires_action')
    this.#waiting.set(turn.id, next)
  }

  /** If no client can find out how to answer, the session does not wait for ever. */
  #deadlineOf({ timeout }: CallPlan): number | null {
    return timeout ?? (this.#state.details.absent.has('answer') ? UNANSWERABLE : null)
  }

  readonly #waiting = new Map<string, () => void>()

  #require(
    session: ModelSession,
    turn: ModelTurn,
    type: ModelAction['type'],
    call: ModelCall | null,
    timeout: number | null,
  ): ModelAction {
    const createdAt = this.#state.now()
    const action: ModelAction = {
      type,
      callId: call?.callId ?? this.#state.id('ask_'),
      turnId: turn.id,
      createdAt,
      expiresAt: timeout === null ? null : createdAt + timeout * 1000,
      call,
    }
    session.actions.push(action)
    return action
  }

  /** The agent waits for this call no longer. */
  close(session: ModelSession, call: ModelCall): void {
    if (call.goneAt !== null) return
    this.#gone(call)
    session.actions = session.actions.filter((action) => action.call !== call)
    this.#state.emit('tool.resolved', session, call.turnId, { call_id: call.callId })
    this.#goOn(session, call.turnId)
  }

  #gone(call: ModelCall): void {
    call.goneAt = this.#state.now()
  }

  /** Calls that stay listed although their answers were taken. */
  lingering = 0

  /** The answer was taken: its call goes from the list now, or in a while. */
  answered(session: ModelSession, call: ModelCall): void {
    const { lingers } = call.plan
    if (lingers === undefined) return this.close(session, call)
    this.lingering++
    this.#agenda.in(lingers, () => {
      this.lingering--
      if (session.deleted) return
      this.onLingered(call)
      this.close(session, call)
    })
  }

  /** Called when a call that stayed listed disappears. */
  onLingered: (call: ModelCall) => void = () => undefined

  /** The sandbox did not hold the call: the turn lost its answers. */
  drop(session: ModelSession, call: ModelCall): void {
    call.notDelivered = true
    for (const action of session.actions) if (action.call !== null) this.#gone(action.call)
    session.actions = session.actions.filter((action) => action.call === null)
    this.#goOn(session, call.turnId)
  }

  #goOn(session: ModelSession, turnId: string): void {
    if (session.actions.length > 0) return
    const next = this.#waiting.get(turnId)
    this.#waiting.delete(turnId)
    if (next !== undefined) this.#resume(session, next)
  }

  #resume(session: ModelSession, next: () => void): void {
    this.#state.touch(session)
    this.#state.become(session, 'working')
    next()
  }

  #finish(session: ModelSession, turn: ModelTurn): void {
    const { end, artifacts } = turn.plan
    turn.status = end === 'other' ? this.#state.details.otherStatus : end
    turn.completedAt = this.#state.now()
    turn.artifacts = 'pending'
    this.#state.emit('turn.ended', session, turn.id, {})
    let notified = false
    const notify = (): void => {
      if (!notified && end !== 'other') this.#state.onNotice(`turn.${end}`, session, turn)
      notified = true
    }
    const collected = (): void => {
      for (let count = 0; count < artifacts.count; count++) {
        session.artifacts.push({ id: this.#state.id('art_'), turnId: turn.id })
        this.#state.emit('artifact.created', session, turn.id, {})
      }
      if (artifacts.state === 'partial') turn.skipped.push({ path: 'big.bin', reason: 'too large' })
      turn.artifacts = artifacts.state
      turn.settledAt = this.#state.now()
      this.#state.touch(session)
      notify()
    }
    if (artifacts.ms === 0) collected()
    else {
      this.#agenda.in(artifacts.ms, collected)
      this.#agenda.in(NOTICE_WAIT, notify)
    }
    this.#end(session, end === 'failed' ? 'failed' : 'idle')
  }

  #end(session: ModelSession, status: 'idle' | 'failed'): void {
    this.#state.become(session, status)
    session.busy = false
    const next = session.queue.shift()
    if (next === undefined) return
    this.#state.emit('message.dequeued', session, null, {})
    this.#begin(session, next)
  }

  /** Nothing happens in a session that is gone. */
  #later(session: ModelSession, ms: number, run: () => void): void {
    this.#agenda.in(ms, () => {
      if (!session.deleted) run()
    })
  }
}
