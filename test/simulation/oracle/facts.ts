import type { Simulation } from '../simulation.ts'
import type { ModelSession, ModelTurn } from '../service/state.ts'
import type { Fault } from './rest.ts'
import { ABOUT } from './beginning.ts'
import { endOf } from './watch.ts'

interface FactRow {
  pos: number
  id: string
  type: string
  session_id: string | null
  turn_id: string | null
  family: string
  seq: string | null
  subject: string | null
  body: string
  at: number
}

/** I1 and I12: everything that happened is a fact, once, in its order. */
export function factFaults(simulation: Simulation): Fault | null {
  const facts = factsOf(simulation)
  return (
    misplaced(simulation, facts) ??
    (simulation.scenario.channels.stream ? transcript(simulation, facts) : items(simulation, facts)) ??
    sessions(simulation, facts) ??
    turns(simulation, facts) ??
    late(simulation, facts)
  )
}

/** What holds of the log at any time. */
export function logFaults(simulation: Simulation): Fault | null {
  return misplaced(simulation, factsOf(simulation))
}

function factsOf({ db }: Simulation): FactRow[] {
  return db
    .prepare<[], FactRow>(
      'SELECT pos, id, type, session_id, turn_id, family, seq, subject, body, at FROM all_facts ORDER BY pos',
    )
    .all()
}

function misplaced(simulation: Simulation, facts: readonly FactRow[]): Fault | null {
  return twice(simulation, facts) ?? order(facts)
}

/** The same thing stored twice. */
function twice(simulation: Simulation, facts: readonly FactRow[]): Fault | null {
  const first = new Map<string, FactRow>()
  for (const fact of facts) {
    const key = naturalKey(fact)
    const before = first.get(key)
    if (before === undefined) first.set(key, fact)
    else if (!isForgotten(simulation, before, fact))
      return { invariant: 'I1', message: `${key} is stored as ${before.id} and as ${fact.id}` }
  }
  return null
}

/**
 * A session that left the scope is forgotten after the retention: when it returns, its state is reported again, under the
 * same ids.
 */
function isForgotten({ state, scenario }: Simulation, before: FactRow, fact: FactRow): boolean {
  if (scenario.upkeep === null || fact.id !== before.id || fact.seq !== null) return false
  const moved = state.sessions.get(fact.session_id ?? '')?.fate === 'moved'
  return moved && fact.at - before.at > scenario.upkeep.retention
}

function naturalKey({ type, subject, seq, body, session_id: session }: FactRow): string {
  if (seq !== null) return `seq ${seq}`
  const data = JSON.parse(body) as Record<string, Record<string, unknown> | undefined>
  if (subject !== null) {
    if (/^session\.(working|idle|requires_action|failed)/.test(subject))
      return `${type} ${session} ${String(data['session']?.['updated_at'])}`
    return subject
  }
  if (data['call'] !== undefined) return `call ${String(data['call']['call_id'])}`
  return `item ${String(data['payload']?.['id'])}`
}

/**
 * Every persisted event from the first that we took, or from the first of a session that was made after we first opened
 * the stream. With `now`, those before were there before us.
 */
function transcript(simulation: Simulation, facts: readonly FactRow[]): Fault | null {
  const { state, scenario } = simulation
  const stored = new Map(
    facts.flatMap((fact) => (fact.seq === null ? [] : [[Number(fact.seq), fact] as const])),
  )
  const [begun = Infinity] = stored.keys()
  const first = scenario.startFrom === 'beginning' ? 0 : Math.min(begun, firstNew(simulation))
  const { beginning } = simulation.watch
  const before = Math.min(simulation.begin - ABOUT, beginning.earliest - scenario.skew)
  for (const { at, seq, type, sessionId } of state.events) {
    const session = state.sessions.get(sessionId ?? '')
    if (session !== undefined && session.fate !== 'ours') continue
    if (scenario.startFrom === 'now' && at < before && stored.has(seq))
      return { invariant: 'old', message: `seq ${seq} (${type}) is older than the start and is delivered` }
    if (seq < first) continue
    const fact = stored.get(seq)
    // It was deleted before it could be read, so its owner is unknown.
    if (fact === undefined && (scenario.scope ?? null) !== null && session?.deleted === true) continue
    if (fact === undefined) return { invariant: 'I1', message: `seq ${seq} (${type}) is not stored` }
    if (fact.session_id !== sessionId)
      return { invariant: 'I1', message: `seq ${seq} is of ${sessionId} and stored for ${fact.session_id}` }
  }
  return null
}

/** The seq from which events are certainly new. */
function firstNew({ state, db }: Simulation): number {
  const opened = db
    .prepare<[], string>("SELECT value FROM checkpoints WHERE name = 'stream_opened'")
    .pluck()
    .get()
  if (opened === undefined) return Infinity
  const made = new Map(state.alive().map(({ id, createdAt }) => [id, createdAt]))
  const first = state.events.find(
    ({ sessionId }) => (made.get(sessionId ?? '') ?? 0) > Number(opened) + ABOUT,
  )
  return first?.seq ?? Infinity
}

function items({ state, scenario }: Simulation, facts: readonly FactRow[]): Fault | null {
  if (scenario.startFrom !== 'beginning') return null
  const stored = new Set(facts.map((fact) => naturalKey(fact)))
  for (const session of state.alive().filter(isOurs)) {
    for (const { id, event } of session.items)
      if (!stored.has(`item ${id}`))
        return { invariant: 'I1', message: `item ${id} (${event}) is not stored` }
  }
  return null
}

/** Older events make no facts unless `start_from` is `beginning`. */
function isNew({ scenario, lookedFrom }: Simulation, createdAt: number): boolean {
  return scenario.startFrom === 'beginning' || createdAt > (lookedFrom ?? Infinity) + scenario.skew + 1000
}

/** A turn that the first look found before its artifacts were final makes its facts, however long it had been there. */
function wasUnderWay({ scenario, lookedAt }: Simulation, { settledAt }: ModelTurn): boolean {
  return lookedAt !== null && (settledAt ?? Infinity) > lookedAt + scenario.skew
}

function isOurs({ fate }: ModelSession): boolean {
  return fate === 'ours'
}

function sessions(simulation: Simulation, facts: readonly FactRow[]): Fault | null {
  const reported = new Set(facts.map(({ type, session_id }) => `${type} ${session_id}`))
  for (const { id, createdAt } of simulation.state.alive().filter(isOurs)) {
    if (isNew(simulation, createdAt) && !reported.has(`session.created ${id}`))
      return { invariant: 'I1', message: `there is no session.created of ${id}` }
  }
  return null
}

function turns(simulation: Simulation, facts: readonly FactRow[]): Fault | null {
  const reported = new Set(
    facts.filter(({ family }) => family === 'state').map(({ type, turn_id }) => `${type} ${turn_id}`),
  )
  for (const session of simulation.state.alive().filter(isOurs)) {
    for (const turn of session.turns) {
      if (!isNew(simulation, turn.createdAt) && !wasUnderWay(simulation, turn)) continue
      for (const type of typesOf(turn))
        if (!reported.has(`${type} ${turn.id}`))
          return { invariant: 'I1', message: `there is no ${type} of ${turn.id}` }
    }
  }
  return null
}

/**
 * Without faults, the maximum delay of a reported end, milliseconds: a poll every ten seconds, and
 * the read.
 */
const SOON = 15_000
/** Where the service's rate was used up now and then, it takes so much longer. */
const LIMITED = 20_000

function late({ sites, state, scenario, begin }: Simulation, facts: readonly FactRow[]): Fault | null {
  if (sites.fired.some(({ fault }) => fault !== 'rate_limit')) return null
  const most = sites.fired.length > 0 ? SOON + LIMITED : SOON
  const ends = new Map(facts.filter(({ type }) => ENDS.test(type)).map(({ turn_id, at }) => [turn_id, at]))
  for (const { turns } of state.alive().filter(isOurs)) {
    for (const { id, completedAt } of turns) {
      // An end before the start is reported at the start.
      const from = Math.max(completedAt ?? Infinity, begin + scenario.skew)
      const lag = (ends.get(id) ?? 0) + scenario.skew - from
      if (lag > most) return { invariant: 'prompt', message: `the end of ${id} was reported after ${lag} ms` }
    }
  }
  return null
}

const ENDS = /^turn\.(completed|failed|ended)$/

function typesOf(turn: ModelTurn): string[] {
  if (turn.completedAt === null) return ['turn.started']
  return ['turn.started', endOf(turn.status), ...(turn.artifacts === 'pending' ? [] : ['turn.settled'])]
}

/** Facts of a turn, and of an action, in causal order; the transcript of a session by its seq. */
function order(facts: readonly FactRow[]): Fault | null {
  const stage = new Map<string, number>()
  const seqs = new Map<string, number>()
  const begun = new Map<string | null, number>()
  for (const { type, turn_id: turn, session_id: session, seq, subject, body } of facts) {
    if (type === 'turn.started') {
      const { created_at: made } = (JSON.parse(body) as { turn: { created_at: number } }).turn
      if (made < (begun.get(session) ?? 0))
        return { invariant: 'I12', message: `${turn} is reported after a newer one` }
      begun.set(session, made)
    }
    if (seq !== null) {
      const last = seqs.get(session ?? '') ?? 0
      if (Number(seq) < last)
        return { invariant: 'I12', message: `seq ${seq} of ${session} is stored after ${last}` }
      seqs.set(session ?? '', Number(seq))
      continue
    }
    const rank = RANKS.findIndex((pattern) => pattern.test(type))
    if (rank === -1 || subject === null) continue
    const about = type.startsWith('action.') ? subject.slice(subject.indexOf('/')) : (turn ?? '')
    if (rank < (stage.get(about) ?? -1))
      return { invariant: 'I12', message: `${type} of ${about} is out of order` }
    stage.set(about, rank)
    if (type.startsWith('action.') && turn !== null && (stage.get(turn) ?? 0) > 0)
      return { invariant: 'I12', message: `${type} after the end of ${turn}` }
  }
  return null
}

const RANKS = [
  /^turn\.started$|^action\.required$/,
  /^turn\.(completed|failed|ended)$|^action\.resolved$/,
  /^turn\.settled$/,
]
