import { Chance } from './chance.ts'
import type { Part } from './edges.ts'
import type { HangingPlan } from './hanging.ts'
import { drawScope, type ScopePlan } from './scope.ts'

/** What the agent does in one turn. */
export type Step =
  | { do: 'say' }
  | { do: 'think' }
  /** So many transient events at once. */
  | { do: 'shout'; deltas: number }
  | { do: 'call'; calls: CallPlan[] }
  | { do: 'person'; kind: 'approval' | 'question'; after: number }
  | { do: 'wait'; ms: number }
  | { do: 'notice' }

export interface CallPlan {
  tool: string
  /** Seconds, null for no deadline. */
  timeout: number | null
  /** False: the sandbox does not hold the call (`not_delivered`). */
  held: boolean
  /** The service refuses the output with a 400; the error is taken. */
  refusesOutput: boolean
  /** Milliseconds for which the call stays listed after its answer was taken. */
  lingers?: number
}

export interface TurnPlan {
  steps: Step[]
  end: 'completed' | 'failed' | 'other'
  /** A run that cannot start: no turn, an error item. */
  startFails: boolean
  /** Of the message that starts it. */
  text?: string
  artifacts: { ms: number; state: 'ready' | 'partial' | 'failed'; count: number }
}

export interface SessionPlan {
  /** Milliseconds after the beginning; the sidecar starts at 0. */
  at: number
  /** When each message is sent, after the session was made. */
  messages: { at: number; turn: TurnPlan }[]
  /** When it is deleted. */
  deleted: number | null
}

export interface HandlerPlan {
  name: string
  kind: 'http' | 'module'
  events: string[]
  ordered: boolean
  batch: number
  format: 'standard' | 'cloudevents'
}

/** How soon what is delivered goes, and what an operator does meanwhile. */
export interface Upkeep {
  /** Milliseconds. */
  retention: number
  /** Between two rounds of housekeeping, milliseconds. */
  interval: number
  /** When he does what, milliseconds after the beginning. */
  acts: { at: number; do: Act }[]
}

export const ACTS = ['retry one', 'retry dead', 'replay', 'pause'] as const
export type Act = (typeof ACTS)[number]

export interface Scenario {
  channels: { stream: boolean; webhook: boolean; poll: boolean }
  startFrom: 'now' | 'beginning'
  handlers: HandlerPlan[]
  sessions: SessionPlan[]
  /** The service's clock less the true time, milliseconds. */
  skew: number
  /** Until then things go wrong, milliseconds after the beginning. */
  faultsUntil: number
  /** null: it is not deleted. */
  upkeep: Upkeep | null
  /** What the service's description lacks. */
  absent?: readonly Part[]
  /** What a handler over HTTP takes for each callback, milliseconds; absent: next to nothing. */
  handlerTakes?: number
  /** The reads of one session hang; absent: of none. */
  hanging?: HangingPlan
  /** null: every session is ours. */
  scope?: ScopePlan | null
  /** Milliseconds after the beginning: a second process is started on the store; absent: never. */
  secondAt?: number
  /** Processes on one store; absent: one, on a store of its own. */
  replicas?: ReplicasPlan
}

export interface ReplicasPlan {
  /** What the wall clock of each is off, milliseconds. */
  skews: readonly number[]
}

export const TOOLS = ['lookup', 'charge', 'later', 'inside'] as const
/** A function that another program answers. */
export const STRANGER = 'stranger'

/** How much happens in one seed. */
interface Size {
  sessions: readonly number[]
  /** For each session. */
  messages: readonly number[]
  /** Of a turn, at most. */
  steps: number
  /** How likely each handler is that is not always there. */
  handlers: number
  /** Milliseconds. */
  faultsUntil: readonly number[]
}

/** Most bugs show in little, of which twice as much is played in a minute. */
const SMALL: Size = {
  sessions: [1, 1, 1, 2],
  messages: [1, 1, 1, 2],
  steps: 3,
  handlers: 0.25,
  faultsUntil: [3000, 6000, 15_000],
}

/** Some need a crowd. */
export const LARGE: Size = {
  sessions: [1, 1, 2, 2, 3, 4],
  messages: [1, 1, 1, 2, 3],
  steps: 4,
  handlers: 0.3,
  faultsUntil: [5000, 15_000, 30_000],
}

/** Of several processes. Ten planted bugs were found in two thirds of the processor time that large seeds alone need. */
const SHARED_SMALL: Size = {
  sessions: [1, 2, 2, 3],
  messages: [1, 1, 2],
  steps: 3,
  handlers: 0.25,
  faultsUntil: [20_000, 30_000, 45_000],
}

const SHARED_LARGE: Size = {
  sessions: [2, 3, 4, 6],
  messages: [1, 2, 3],
  steps: 4,
  handlers: 0.3,
  faultsUntil: [20_000, 45_000, 90_000],
}

/** Seeds in which a second process is started; those in the table of planted bugs and of old stories are none of them. */
const SECOND = { of: 22, rest: 17 }

/** Off the true time, milliseconds. With the service's clock, webhooks are less than five minutes off. */
const SKEWS = [0, 0, 3000, -3000, 40_000, -40_000]

/** What several processes play: more sessions, for longer. A process that died is noticed after a quarter of a minute. */
export function drawShared(seed: number, count: number): Scenario {
  const chance = new Chance(seed, 'several processes')
  const size = new Chance(seed, 'shared size').is(0.1) ? SHARED_LARGE : SHARED_SMALL
  const { upkeep, scope: _scope, secondAt: _second, ...plan } = drawScenario(seed, size)
  const { faultsUntil } = plan
  return {
    ...plan,
    channels: chance.pick(CHANNELS.filter(({ poll }) => poll)),
    sessions: plan.sessions.map((session) => ({ ...session, at: chance.int(0, faultsUntil * 0.7) })),
    scope: null,
    upkeep: {
      ...(upkeep ?? { retention: 60_000, interval: 2000 }),
      acts: Array.from({ length: chance.int(0, 8) }, () => ({
        at: chance.int(1000, faultsUntil),
        do: chance.pick(ACTS),
      })),
    },
    replicas: { skews: Array.from({ length: count }, () => chance.pick(SKEWS)) },
  }
}

export function drawScenario(
  seed: number,
  size = new Chance(seed, 'size').is(0.1) ? LARGE : SMALL,
): Scenario {
  const chance = new Chance(seed, 'scenario')
  const count = chance.pick(size.sessions)
  const channels = chance.pick(CHANNELS)
  const startFrom = chance.is(0.6) ? 'beginning' : 'now'
  const handlers = drawHandlers(chance, size)
  const sessions = Array.from({ length: count }, () => drawSession(chance, size))
  // A webhook whose time is more than five minutes off is refused, as it should be.
  const skew = chance.pick([0, 0, 40_000, -40_000, channels.webhook ? 60_000 : 3_600_000])
  const faultsUntil = chance.pick(size.faultsUntil)
  const scope = drawScope(new Chance(seed, 'scope'), faultsUntil, (strangers) => drawSession(strangers, size))
  const upkeep = drawUpkeep(new Chance(seed, 'upkeep'), faultsUntil, scope !== null)
  const plan: Scenario = { channels, startFrom, handlers, sessions, skew, faultsUntil, upkeep, scope }
  if (seed % SECOND.of !== SECOND.rest) return plan
  return { ...plan, secondAt: new Chance(seed, 'second process').int(300, faultsUntil) }
}

/** Frames of an unknown session are held while later frames are delivered and pruned: `held` makes that likely. */
function drawUpkeep(chance: Chance, faultsUntil: number, held: boolean): Upkeep | null {
  if (!chance.is(held ? 2 / 3 : 1 / 3)) return null
  return {
    retention: held ? 2000 : chance.pick([2000, 10_000, 60_000]),
    interval: chance.pick([300, 2000]),
    acts: Array.from({ length: chance.int(0, 4) }, () => ({
      at: chance.int(200, faultsUntil),
      do: chance.pick(ACTS),
    })),
  }
}

const CHANNELS = [
  { stream: true, webhook: true, poll: true },
  { stream: true, webhook: true, poll: true },
  { stream: true, webhook: false, poll: true },
  { stream: true, webhook: false, poll: false },
  { stream: false, webhook: true, poll: true },
  { stream: false, webhook: true, poll: false },
  { stream: false, webhook: false, poll: true },
]

export const APP: HandlerPlan = {
  name: 'app',
  kind: 'http',
  events: ['*'],
  ordered: true,
  batch: 1,
  format: 'standard',
}

function drawHandlers(chance: Chance, size: Size): HandlerPlan[] {
  const more: HandlerPlan[] = [
    { ...APP, name: 'loose', events: ['turn.*', 'call.*', 'agent.message'], ordered: false },
    { ...APP, name: 'bundles', batch: 5, format: chance.pick(['standard', 'cloudevents']) },
    { ...APP, name: 'inside', kind: 'module', events: ['turn.*', 'action.*', 'session.*', 'agent.text'] },
  ]
  return [APP, ...chance.some(more, size.handlers)]
}

function drawSession(chance: Chance, size: Size): SessionPlan {
  const at = chance.is(0.2) ? -chance.int(1, 20_000) : chance.int(0, 4000)
  const count = chance.pick(size.messages)
  return {
    at,
    messages: Array.from({ length: count }, (_, index) => ({
      at: index === 0 ? chance.int(0, 300) : chance.int(0, 8000),
      turn: drawTurn(chance, size),
    })).sort((a, b) => a.at - b.at),
    deleted: chance.is(0.1) ? chance.int(500, 15_000) : null,
  }
}

export const PLAIN: TurnPlan = {
  steps: [{ do: 'say' }],
  end: 'completed',
  startFails: false,
  artifacts: { ms: 300, state: 'ready', count: 0 },
}

function drawTurn(chance: Chance, { steps }: Size): TurnPlan {
  const length = chance.int(1, steps)
  return {
    steps: Array.from({ length }, () => drawStep(chance)),
    end: chance.is(0.8) ? 'completed' : chance.pick(['failed', 'other']),
    startFails: chance.is(0.05),
    artifacts: {
      ms: chance.pick([0, 50, 400, 3000, 45_000]),
      state: chance.pick(['ready', 'ready', 'partial', 'failed']),
      count: chance.int(0, 2),
    },
  }
}

function drawStep(chance: Chance): Step {
  const kind = chance.pick([
    'say',
    'say',
    'think',
    'call',
    'call',
    'call',
    'person',
    'wait',
    'notice',
  ] as const)
  switch (kind) {
    case 'call':
      return { do: 'call', calls: Array.from({ length: chance.pick([1, 1, 2, 3]) }, () => drawCall(chance)) }
    case 'person':
      return {
        do: 'person',
        kind: chance.pick(['approval', 'question']),
        after: chance.pick([100, 2000, 20_000]),
      }
    case 'wait':
      return { do: 'wait', ms: chance.pick([10, 500, 6000]) }
    case 'say':
    case 'think':
    case 'notice':
      return { do: kind }
  }
}

function drawCall(chance: Chance): CallPlan {
  return {
    tool: chance.is(0.05) ? STRANGER : chance.pick(TOOLS),
    timeout: chance.pick([null, 120, 120, 20, 3]),
    held: chance.is(0.9),
    refusesOutput: chance.is(0.06),
  }
}
