import type { CallbackEvent } from '../../../src/core/handler.ts'
import type { HttpReply, HttpRequest, HttpStreamRequest } from '../../../src/std/ports.ts'
import type { Batch, Committed } from '../../../src/core/store.ts'
import type { Sqlite } from '../../../src/sidecar/store/sqlite/open.ts'
import type { Agenda } from '../agenda.ts'
import type { Fault, Fired } from '../faults.ts'
import type { Life } from '../life.ts'
import type { SharedStore } from '../replicas.ts'
import type { Asked } from '../service/api.ts'
import { LINGERS } from '../edges.ts'
import type { ModelCall, ServiceState } from '../service/state.ts'
import type { Sites } from '../sites.ts'
import type { Trace } from '../trace.ts'
import { eventsOf, textOf } from '../request.ts'
import { endsCall, noteAnswer, saysTaken } from '../expected.ts'
import { runs } from '../../checker/calls.ts'
import type { Run } from '../../checker/history.ts'
import { endOf } from '../../checker/reports.ts'
import { Arrows } from './arrows.ts'
import { Attempts } from './attempts.ts'
import { Beginning } from './beginning.ts'
import { Belonging } from './belonging.ts'
import { isStoredAnew } from '../scope.ts'
import { Endings, hadTime, mayFail } from './endings.ts'
import { Redeliveries } from './redeliveries.ts'
import type { Fairness } from './fairness.ts'
import { leakOf } from './secrets.ts'

/** What the application saw and said of one event. */
export interface Receipt {
  /** Tries that went out, whether or not they came. */
  sent: number
  /** Answers 2xx without a verdict. */
  taken: number
  verdictDead: boolean
  /** Answers 2xx without a verdict that could be read. */
  heard: number
  /** The process that got 2xx, without a verdict; null: none. */
  knownTaken: Life | null
  /** True time: no further try of the same life before. */
  notBefore: number
  lastLife: number
  /** Answers with a Retry-After that came. */
  putOff: number
  /** The life that got an answer that it could not read to the last try; null: another answer, or none. */
  unread: Life | null
  /** `delivery.attempt` of the last try, and what that of the next must reach. */
  number: number
  next: number
}

export interface WatchParts {
  agenda: Agenda
  trace: Trace
  db: Sqlite
  state: ServiceState
  sites: Sites
  /** Milliseconds until a delivered fact is pruned, and then kept for us; null: nothing is pruned. */
  retention: number | null
  /** Several processes have the store; null: one. */
  shared: SharedStore | null
  /** The service's clock is another one. */
  skewed: boolean
}

interface CallRow {
  state: string
  result_kind: string | null
  result_text: string | null
  outcome: string | null
  ended_at: number | null
}

/** The id of an event that is not stored. */
const TRANSIENT = /^evt_t_[0-9a-z]{8}_[0-9a-z]{1,6}$/
/** A handler that was paused is left alone so soon, milliseconds. */
const AT_ONCE = 50
/** Of several processes one looks so often, and stops by itself so soon when it does not reach the store. */
const LOOKS = 2000
/** Of a wait on the service's clock, of which a `Date` shows whole seconds: by so much two processes may differ, milliseconds. */
const INEXACT = 2500
const STOPS = 20_000
/** The status with which a handler asks for time. */
const PUT_OFF = 429
/** Tools over HTTP whose output is in their answer. */
const ANSWERS_AT_ONCE: ReadonlySet<string> = new Set(['lookup', 'charge'])
/** A tool that must not run twice. */
const ONCE = new Set(['charge'])
const FINAL = /^turn\.(completed|failed|ended|settled)$/

/** Looks on while things happen and says at once what must never be. */
export class Watch {
  readonly receipts = new Map<string, Receipt>()
  readonly toolRuns = new Map<string, readonly Run[]>()
  /** What was posted for each call, in order. */
  readonly answers = new Map<string, string[]>()
  readonly redeliveries: Redeliveries
  readonly beginning: Beginning
  readonly belonging: Belonging
  readonly attempts: Attempts
  readonly #parts: WatchParts
  readonly #endings: Endings
  readonly #underWay = new Map<string, number>()
  /** The rate budget of the token `of` is closed until `until`; the other processes know from `known` on. True time. */
  #waits: { by: Life; of: string; known: number; until: number }[] = []
  readonly #lastPos = new Map<string, number>()
  readonly #call
  readonly #pos
  readonly #stored
  readonly #cursor
  readonly #bySeq
  readonly #tries
  readonly #dead
  /** null where nothing is pruned. */
  readonly #gone
  #lastCursor = 0n
  fairness: Fairness | null = null
  /** The organization is shared with other sidecars. */
  scoped = false
  readonly #arrows: Arrows
  #ordered: ReadonlySet<string>
  /** True time at which a webhook's hint about a session was last stored. */
  readonly #hinted = new Map<string, number>()

  constructor(parts: WatchParts, ordered: ReadonlySet<string>) {
    this.#parts = parts
    this.#endings = new Endings(parts)
    this.beginning = new Beginning(parts)
    this.belonging = new Belonging(parts)
    this.#ordered = ordered
    const { db } = parts
    this.redeliveries = new Redeliveries(db, this.receipts)
    this.attempts = new Attempts(parts, this.receipts)
    this.#arrows = new Arrows(db)
    this.#call = db.prepare<[string], CallRow>(
      'SELECT state, result_kind, result_text, outcome, ended_at FROM calls WHERE call_id = ?',
    )
    this.#pos = db.prepare<[string], number>('SELECT pos FROM all_facts WHERE id = ?').pluck()
    this.#stored = db
      .prepare<[string], number>(
        'SELECT at FROM all_facts WHERE id = ? AND seq IS NULL ORDER BY pos DESC LIMIT 2',
      )
      .pluck()
    this.#cursor = db.prepare<[], string>("SELECT value FROM checkpoints WHERE name = 'stream'").pluck()
    this.#bySeq = db
      .prepare<[string, string], number>(
        `SELECT pos FROM all_facts WHERE seq = ? UNION ALL SELECT pos FROM held_frames WHERE fact ->> 'seq' = ?`,
      )
      .pluck()
    this.#tries = db
      .prepare<[string, string], string>(
        `SELECT d.log FROM all_deliveries d JOIN all_facts f ON f.pos = d.fact_pos JOIN handlers h ON h.number = d.handler
         WHERE f.id = ? AND h.name = ?`,
      )
      .pluck()
    this.#dead = db
      .prepare<[string, string], number>(
        `SELECT d.status = 2 FROM all_deliveries d JOIN all_facts f ON f.pos = d.fact_pos
         JOIN handlers h ON h.number = d.handler WHERE f.id = ? AND h.name = ?`,
      )
      .pluck()
    this.#gone = parts.retention !== null ? goneFrom(db) : null
  }

  #broken(invariant: string, message: string): void {
    this.#parts.trace.broken(invariant, message)
  }

  /** After each transaction: the cursor never passes a fact that is not there, and never goes back. */
  committed(life: Life): void {
    if (life.replaced)
      this.#broken('I8', `life ${life.number} has written after another process had taken its store`)
    if (life.face !== null && this.#parts.shared?.isFenced(life.face.id) === true)
      this.#broken('I8', `life ${life.number} has written after its leases were taken`)
    for (const message of this.#arrows.wrong()) this.#broken('I5', message)
    const value = this.#cursor.get()
    if (value === undefined || value === null) return
    const cursor = BigInt(value)
    if (cursor < this.#lastCursor)
      this.#broken('I2', `the cursor went back from ${this.#lastCursor} to ${cursor}`)
    if (cursor === this.#lastCursor) return
    const first = this.#lastCursor
    this.#lastCursor = cursor
    // Without an earlier cursor, the configuration sets the beginning.
    if (first === 0n) return
    const { events, sessions } = this.#parts.state
    for (const { seq, sessionId } of events) {
      const session = sessions.get(sessionId ?? '')
      // The owner of a session that was deleted before it could be read is unknown.
      if (this.scoped && (session?.deleted === true || (session !== undefined && session.fate !== 'ours')))
        continue
      if (
        BigInt(seq) > first &&
        BigInt(seq) <= cursor &&
        this.#bySeq.get(String(seq), String(seq)) === undefined
      )
        this.#broken('I2', `the cursor is at ${cursor} and seq ${seq} is not stored`)
    }
  }

  stored(life: Life, batch: Batch, { stale, refused }: Committed): void {
    for (const hint of batch.hints ?? []) {
      if (hint.channel === 'webhook') this.#hinted.set(hint.sessionId ?? '', this.#parts.agenda.now)
    }
    const offered = (batch.newCalls ?? []).map(({ callId }) => callId)
    this.#endings.found(life, offered)
    for (const reading of batch.readings ?? [])
      if (!stale.includes(reading.sessionId)) this.#endings.read(life, reading)
    for (const { callId, event } of batch.calls ?? [])
      if (endsCall(event) && !refused.includes(callId)) this.#endings.closed(life, callId)
  }

  /** A pollLoop asks when there is work. */
  looked(life: Life): void {
    if (!life.looks.asks(this.#parts.agenda.now))
      this.#broken('spin', 'the store is asked for work again and again without a pause')
  }

  /** A process whose leases are over, on the store's clock, has stopped by itself before. */
  mayWork({ face, disturbed, number }: Life): void {
    const { shared } = this.#parts
    if (face === null || shared === null || face.membership.lost !== null) return
    const stopped = face.membership.refusal !== null
    if (!stopped && shared.isOver(face.id))
      this.#broken('I18', `life ${number} works on, and its leases are over`)
    if (stopped && disturbed === 'no')
      this.#broken('I18', `life ${number} does not renew its leases in time, and nothing kept it from that`)
  }

  /** Only what is older than `before` may go, and nothing that is pending. */
  pruned(before: number): void {
    if (this.#gone === null) return
    const wrong = this.#gone.wrong.get(this.#goneUpTo, before) ?? 0
    if (wrong > 0) this.#broken('I1', `${wrong} facts went before their time, or while they were pending`)
    this.#goneUpTo = this.#gone.last.get() ?? 0
  }

  paused(handler: string, reason: string | null): void {
    if (reason === null) this.#paused.delete(handler)
    else this.#paused.set(handler, this.#parts.agenda.now)
  }

  /** After each step. */
  look(): void {
    this.fairness?.look()
    this.#endings.look()
  }

  /** Nothing goes wrong any more. */
  calm(): void {
    this.#endings.calmAt = this.#parts.agenda.now
  }

  /** A webhook was answered 2xx, whose delivery, or a copy of it, came first at `since`. */
  acknowledged(sessionId: string, since: number): void {
    if ((this.#hinted.get(sessionId) ?? -Infinity) < since)
      this.#broken('I6', `a webhook about ${sessionId} was answered, its hint is not stored`)
  }

  /** A request leaves the sidecar. */
  sent(life: Life, name: string, request: HttpRequest | HttpStreamRequest): void {
    const { now } = this.#parts.agenda
    const leak = leakOf(request, name !== 'tool' && name !== 'callback')
    if (leak !== undefined) this.#broken('I13', `${name} goes out with "${leak}" in it`)
    const token = request.headers['authorization']
    if (token !== undefined && token === life.rejectedToken)
      this.#broken('I9', `${name} was asked with a token that was rejected`)
    if (token !== undefined && now < life.limitedUntil)
      this.#broken('I9', `${name} was asked ${Math.round(life.limitedUntil - now)} ms before Retry-After`)
    if (name !== 'tool' && name !== 'callback' && now < life.heldUntil)
      this.#broken(
        'I9',
        `${name} was asked ${Math.round(life.heldUntil - now)} ms before the directory's Retry-After`,
      )
    if (name !== 'stream' && token !== undefined) this.#heeds(life, name, token)
    if (name === 'stream' && now < life.streamsLimitedUntil)
      this.#broken('I9', 'a stream was opened before Retry-After')
    if (name !== 'tool' && name !== 'callback' && !life.requests.asks(now))
      this.#broken('I9', 'the service is asked again and again without a pause')
    this.#entitled(life, name, request)
    if (!('method' in request)) return
    const subject = subjectOf(name, request)
    if (subject !== null) this.#endings.sent(life, request, subject)
    if (name === 'answer') this.#posting(request)
    if (name === 'tool') this.#mayRun(JSON.parse(textOf(request)) as { call_id: string; uncertain: boolean })
    if (name === 'callback') this.#callback(life, request)
  }

  /** A process has learned of the waits of the others, and of an earlier one, through the store. */
  #heeds(life: Life, name: string, token: string): void {
    const { agenda, sites, skewed } = this.#parts
    const wait = this.#waits.find(
      ({ by, known, until, of }) =>
        by !== life &&
        of === token &&
        until > agenda.now + INEXACT &&
        agenda.now > known &&
        by.disturbed === 'no',
    )
    const isTroubled = ({ site, fault }: Fired): boolean =>
      site.startsWith('store') || fault.startsWith('disk')
    if (wait === undefined || life.disturbed !== 'no' || skewed || sites.fired.some(isTroubled)) return
    const left = Math.round(wait.until - agenda.now)
    this.#broken(
      'I9',
      `${name} was asked by life ${life.number} ${left} ms before the Retry-After of life ${wait.by.number}`,
    )
  }

  /** At most one process at a time acts for a session, or reads the stream. */
  #entitled({ face, number }: Life, name: string, request: HttpRequest | HttpStreamRequest): void {
    const { shared } = this.#parts
    if (face === null || shared === null) return
    const sessions = name === 'stream' ? [null] : 'method' in request ? this.#actsFor(name, request) : []
    for (const session of sessions) {
      const owner = shared.ownerOf(session)
      if (owner !== face.id)
        this.#broken(
          'I8',
          `${name} of life ${number} for ${session ?? 'all'}, which ${owner ?? 'no process'} has`,
        )
    }
  }

  #actsFor(name: string, request: HttpRequest): (string | null)[] {
    if (name === 'callback') {
      const isOrdered = this.#ordered.has(handlerOf(request))
      // A fact without a session in a lane of its own has the place of its id.
      return storedOf(request).map(({ id, session_id: session }) => session ?? (isOrdered ? null : id))
    }
    if (name !== 'tool') return []
    const { call_id: callId } = JSON.parse(textOf(request)) as { call_id: string }
    return [this.#parts.state.calls.get(callId)?.sessionId ?? null]
  }

  replied(life: Life, name: string, request: HttpRequest): void {
    const subject = subjectOf(name, request)
    if (subject !== null) this.#endings.replied(life, request, subject)
    if (name !== 'callback') return
    for (const lane of this.#lanesOf(life, request))
      this.#underWay.set(lane, (this.#underWay.get(lane) ?? 1) - 1)
    this.fairness?.replied(life.number, handlerOf(request), sessionsOf(request))
  }

  served(
    life: Life,
    { operation, ids, query, body }: Asked,
    request: HttpRequest | HttpStreamRequest,
    reply: HttpReply,
  ): void {
    this.belonging.served(life, { operation, ids, query, body }, reply.status)
    const session = this.#parts.state.sessions.get(ids['session_id'] ?? '')
    // A process that was replaced cannot write what it reads.
    if (reply.status === 404 && session?.deleted === true && !life.replaced) session.missed = true
    if (reply.status === 401) life.rejectedToken = request.headers['authorization'] ?? null
    const until = this.#parts.agenda.now + Number(reply.headers['retry-after']) * 1000
    if (reply.status === 503 && reply.body.includes('directory_unavailable'))
      life.heldUntil = Math.max(life.heldUntil, until)
    if (reply.status !== 429 || !reply.body.includes('rate_limit_exceeded')) return
    if (operation === 'stream') life.streamsLimitedUntil = until
    else {
      life.limitedUntil = Math.max(life.limitedUntil, until)
      const { now } = this.#parts.agenda
      const of = request.headers['authorization'] ?? ''
      this.#waits = this.#waits.filter((wait) => wait.until > now)
      this.#waits.push({ by: life, of, known: now + LOOKS, until })
    }
  }

  /** The application's answer has come. */
  answered(life: Life, name: string, request: HttpRequest, reply: HttpReply): void {
    if (name === 'tool') {
      const { call_id: callId } = JSON.parse(textOf(request)) as { call_id: string }
      this.#outputs.add(`${callId} ${reply.body}`)
      this.#heard.set(callId, (this.#heard.get(callId) ?? 0) + 1)
    }
    if (name !== 'callback') return
    const handler = handlerOf(request)
    const events = eventsOf(request).filter(({ id }) => !TRANSIENT.test(id))
    const taken = noteAnswer(life.counts, handler, events, reply, life.stopping)
    for (const { id } of events) {
      const receipt = this.#receipt(handler, id)
      if (taken) receipt.knownTaken = life
      if (saysTaken(reply)) receipt.heard++
    }
    const after = reply.headers['retry-after']
    if (after === undefined) return
    for (const { id } of events) {
      const receipt = this.#receipt(handler, id)
      receipt.notBefore = this.#parts.agenda.now + Number(after) * 1000
      receipt.lastLife = life.number
      receipt.putOff++
    }
  }

  /** The application got the request and answered; what came cannot be read. */
  unread(life: Life, name: string, request: HttpRequest): void {
    if (name !== 'callback' || life.stopping) return
    for (const { id } of eventsOf(request)) this.#receipt(handlerOf(request), id).unread = life
  }

  #posting(request: HttpRequest): void {
    const body = JSON.parse(textOf(request)) as {
      call_id: string
      output?: string
      error?: string
    }
    const text = body.output === undefined ? `error ${body.error}` : `output ${body.output}`
    const row = this.#call.get(body.call_id)
    if (row === undefined || `${row.result_kind} ${row.result_text}` !== text)
      this.#broken(
        'I4',
        `${body.call_id} is answered with "${text}", stored is "${row?.result_kind} ${row?.result_text}"`,
      )
    const tool = this.toolRuns.get(body.call_id)?.[0]?.name ?? ''
    if (
      ANSWERS_AT_ONCE.has(tool) &&
      body.output !== undefined &&
      !this.#outputs.has(`${body.call_id} ${body.output}`)
    )
      this.#broken(
        'I4',
        `${body.call_id} is answered with "${body.output}", which no answer of its tool said`,
      )
    if (row?.outcome !== null && row?.outcome !== undefined && row.outcome !== 'refused')
      this.#broken('I3', `${body.call_id} is answered again after it was taken as "${row.outcome}"`)
    if (text.startsWith('error') && !this.toolRuns.has(body.call_id) && hadTime(this.#parts, body.call_id))
      this.#broken('I4', `${body.call_id} is given up and never ran, with half of its time left`)
    if (text.startsWith('error') && !mayFail(this.#parts, body.call_id))
      this.#broken('I4', `${body.call_id} is answered with an error for no reason`)
    const before = this.answers.get(body.call_id) ?? []
    this.answers.set(body.call_id, before)
    const last = before.at(-1)
    if (last === text) return
    if (last !== undefined && !(text.startsWith('error') && last.startsWith('output')))
      this.#broken('I4', `${body.call_id} was answered with "${last}" and then with "${text}"`)
    before.push(text)
  }

  /**
   * A call whose answer was accepted long ago disappears from the list: the sidecar no longer
   * follows it.
   */
  lingered({ callId, plan }: ModelCall): void {
    if (plan.lingers === LINGERS.at(-1) && this.#call.get(callId)?.ended_at === null)
      this.#broken('spin', `${callId} was taken, stays listed and is looked after for ever`)
  }

  #mayRun({ call_id, uncertain = true }: { call_id: string; uncertain?: boolean }): void {
    if ((this.toolRuns.get(call_id)?.length ?? 0) > (this.#heard.get(call_id) ?? 0) && !uncertain)
      this.#broken('I5', `${call_id} runs again, and is not marked as uncertain`)
    const row = this.#call.get(call_id)
    if (row === undefined) this.#broken('I5', `${call_id} runs and is not written down`)
    else if (row.state !== 'running' || row.result_kind !== null)
      this.#broken('I5', `${call_id} runs and is ${row.state}, with ${row.result_kind ?? 'no'} result`)
  }

  toolRan(name: string, callId: string, key: string | null): void {
    this.belonging.ran(callId)
    const before = this.toolRuns.get(callId) ?? []
    if (name === 'inside') this.#mayRun({ call_id: callId })
    const ran = [...before, { call_id: callId, name, key }]
    this.toolRuns.set(callId, ran)
    for (const { invariant, message } of runs(ran, ONCE)) this.#broken(invariant, message)
  }

  #callback(life: Life, request: HttpRequest): void {
    for (const lane of this.#lanesOf(life, request)) {
      const count = (this.#underWay.get(lane) ?? 0) + 1
      this.#underWay.set(lane, count)
      if (count > 1) this.#broken('I12', `two callbacks of one lane are under way: ${lane}`)
    }
    const handler = handlerOf(request)
    const sessions = sessionsOf(request)
    if (sessions.length > 0) this.fairness?.sent(life.number, handler, sessions)
    if (this.#parts.agenda.now > (this.#paused.get(handler) ?? Infinity) + this.#soon(life))
      this.#broken('paused', `${handler} is paused and called`)
    for (const event of eventsOf(request)) this.#tried(handler, event, life)
  }

  /** Another process hears of it by a wake, by its next look, or stops by itself. */
  #soon({ face, disturbed }: Life): number {
    if (face === null) return AT_ONCE
    return disturbed === 'no' ? LOOKS : STOPS
  }

  #tried(handler: string, { id, session_id: sessionId, delivery }: CallbackEvent, life: Life): void {
    const receipt = this.#receipt(handler, id)
    const uncounted = receipt.unread === life && delivery.attempt <= receipt.number
    if (uncounted && !this.redeliveries.has(handler))
      this.#broken('I10', `${handler} gave ${id} an answer that cannot be read, and no attempt was counted`)
    receipt.unread = null
    if (!this.redeliveries.has(handler)) this.attempts.check(`${handler} ${id}`, receipt, delivery.attempt)
    if (receipt.knownTaken === life && !this.redeliveries.has(handler) && !this.#wasForgotten(id, sessionId))
      this.#broken('I1', `${handler} took ${id}, was heard, and is asked to take it again`)
    if (receipt.lastLife !== life.number && !this.#knowsWait(handler, id, receipt)) receipt.notBefore = 0
    if (this.#parts.agenda.now < receipt.notBefore)
      this.#broken('I9', `${handler} was asked to take ${id} before its Retry-After`)
    receipt.lastLife = life.number
    receipt.sent++
  }

  /** Whether the last storing of a state fact is a new one (`isStoredAnew`). */
  #wasForgotten(id: string, sessionId: string | null): boolean {
    const { retention, state } = this.#parts
    const [again, before] = this.#stored.all(id)
    if (again === undefined || before === undefined) return false
    return isStoredAnew(state.sessions.get(sessionId ?? '')?.fate, retention, { before, again })
  }

  /** What was not on disk in a crash cannot be kept to; nor can a wait when the wall clock was set between two lives. */
  #knowsWait(handler: string, id: string, { notBefore, putOff }: Receipt): boolean {
    const { agenda, sites } = this.#parts
    if (notBefore <= agenda.now || sites.fired.some(({ fault }) => fault.startsWith('clock_'))) return false
    const tries = this.#tries.get(id, handler) ?? ''
    return tries.split(`"status":${PUT_OFF}`).length - 1 === putOff
  }

  /** The handler got this, and will say `status`; null: nothing. */
  received(
    handler: string,
    events: readonly CallbackEvent[],
    life: Life,
    status: number | null,
    fault: Fault | null,
  ): void {
    for (const event of events) {
      this.belonging.delivered(handler, event.type, event.session_id)
      if (TRANSIENT.test(event.id)) continue
      this.#isStored(handler, event)
      this.#isTrue(event)
      const receipt = this.#receipt(handler, event.id)
      if (handler === 'inside') this.#tried(handler, event, life)
      const verdict = fault === 'verdict_dead' || fault === 'verdict_retry'
      if (status !== null && status < 300 && !verdict) receipt.taken++
      if (fault === 'verdict_dead') receipt.verdictDead = true
    }
  }

  #isStored(handler: string, { id, type, session_id: session }: CallbackEvent): void {
    const pos = this.#pos.get(id)
    if (pos === undefined) return this.#broken('I1', `${handler} got ${type} ${id}, which is not stored`)
    const first = this.#receipt(handler, id).taken === 0 && !this.#seen.has(`${handler} ${id}`)
    if (!first || !this.#ordered.has(handler)) return
    this.#seen.add(`${handler} ${id}`)
    const lane = `${handler}/${session}`
    const last = this.#lastPos.get(lane) ?? 0
    // One that was given up, as each try timed out on its way, may still arrive.
    if (pos < last && this.#dead.get(id, handler) !== 1)
      this.#broken('I12', `${lane}: ${type} (${pos}) came after ${last}`)
    this.#lastPos.set(lane, Math.max(last, pos))
  }

  readonly #seen = new Set<string>()
  /** Bodies of answers of tools that came, by call. */
  readonly #outputs = new Set<string>()
  /** Answers of tools that came, by call. */
  readonly #heard = new Map<string, number>()
  /** Handlers that are paused, and true time since when. */
  readonly #paused = new Map<string, number>()
  /** Facts that went, up to which they were looked at. */
  #goneUpTo = 0

  /** An end is reported only when the turn itself shows it. */
  #isTrue({ type, data, session_id: session }: CallbackEvent): void {
    if (!FINAL.test(type)) return
    const shown = data['turn'] as { id: string; status: string; artifacts: string | null }
    const turn = this.#parts.state.sessions.get(session ?? '')?.turns.find(({ id }) => id === shown.id)
    if (turn === undefined || turn.completedAt === null)
      return this.#broken('I7', `${type} of ${shown.id}, which is not over`)
    const right = type === 'turn.settled' || type === endOf(turn.status)
    if (!right || shown.status !== turn.status)
      this.#broken('I7', `${type} of ${shown.id}, which is ${turn.status}`)
    if (type === 'turn.settled' && (turn.artifacts === 'pending' || shown.artifacts !== turn.artifacts))
      this.#broken(
        'I7',
        `turn.settled of ${shown.id} with artifacts ${shown.artifacts}, which are ${turn.artifacts}`,
      )
  }

  receipt(handler: string, id: string): Receipt | undefined {
    return this.receipts.get(`${handler} ${id}`)
  }

  #receipt(handler: string, id: string): Receipt {
    const key = `${handler} ${id}`
    let receipt = this.receipts.get(key)
    if (receipt === undefined) {
      receipt = {
        sent: 0,
        taken: 0,
        heard: 0,
        unread: null,
        knownTaken: null,
        verdictDead: false,
        notBefore: 0,
        lastLife: 0,
        putOff: 0,
        number: 0,
        next: 0,
      }
      this.receipts.set(key, receipt)
    }
    return receipt
  }

  #lanesOf(life: Life, request: HttpRequest): string[] {
    const handler = handlerOf(request)
    if (!this.#ordered.has(handler)) return []
    return sessionsOf(request).map((session) => `${life.number}/${handler}/${session}`)
  }
}

/** Facts that went after the first so many: how many of them should not have, and how many there are. */
function goneFrom(db: Sqlite) {
  return {
    wrong: db
      .prepare<[number, number], number>(
        `SELECT count(*) FROM gone_facts f WHERE f.rowid > ? AND (f.at >= ?
           OR EXISTS (SELECT 1 FROM gone_deliveries d WHERE d.fact_pos = f.pos AND d.status <> 1))`,
      )
      .pluck(),
    last: db.prepare<[], number | null>('SELECT max(rowid) FROM gone_facts').pluck(),
  }
}

function handlerOf({ url }: HttpRequest): string {
  return url.slice(url.lastIndexOf('/') + 1)
}

/** The session that an answer is for; null: it is another request. */
function subjectOf(name: string, { url }: HttpRequest): string | null {
  if (name !== 'answer') return null
  const [, session = ''] = /\/sessions\/([^/?]+)/.exec(url) ?? []
  return session
}

/** The facts that it carries; a transient event is none. */
function storedOf(request: HttpRequest): CallbackEvent[] {
  return eventsOf(request).filter(({ id }) => !TRANSIENT.test(id))
}

/** Whose facts it carries. */
function sessionsOf(request: HttpRequest): string[] {
  return [...new Set(storedOf(request).map(({ session_id: session }) => session ?? ''))]
}
