import { APP, PLAIN, type CallPlan, type Scenario, type Step, type TurnPlan } from './scenario.ts'

export const CALL: CallPlan = { tool: 'lookup', timeout: 60, held: true, refusesOutput: false }
const ALL = { stream: true, webhook: true, poll: true }

export function story(steps: Step[], more: Partial<Scenario> = {}, turn: Partial<TurnPlan> = {}): Scenario {
  return {
    channels: ALL,
    startFrom: 'beginning',
    handlers: [APP],
    sessions: [{ at: 100, messages: [{ at: 10, turn: { ...PLAIN, ...turn, steps } }], deleted: null }],
    skew: 0,
    faultsUntil: 4000,
    upkeep: null,
    ...more,
  }
}

const call = (...calls: Partial<CallPlan>[]): Step => ({
  do: 'call',
  calls: calls.map((one) => ({ ...CALL, ...one })),
})

/** Small stories that are short enough to crash at every one of their places. */
export const FIXED: Readonly<Record<string, Scenario>> = {
  'plain turn': story([{ do: 'say' }]),
  'two calls at once': story([call({}, { tool: 'charge' })]),
  'a call that its app puts off': story([call({ tool: 'later' })]),
  'an answer that is refused': story([call({ refusesOutput: true })]),
  'an approval': story([{ do: 'person', kind: 'approval', after: 400 }]),
  'an answer that is not delivered': story([call({ held: false })]),
  'artifacts that are partial': story(
    [{ do: 'say' }],
    {},
    { artifacts: { ms: 900, state: 'partial', count: 1 } },
  ),
  'a run that cannot start': story([], {}, { startFails: true }),
  'webhooks only': story([call({})], { channels: { stream: false, webhook: true, poll: false } }),
  // A look comes every ten seconds.
  'polling only': story([call({})], {
    channels: { stream: false, webhook: false, poll: true },
    faultsUntil: 25_000,
  }),
  'polling what is over already': story(
    [{ do: 'say' }],
    { channels: { stream: false, webhook: false, poll: true }, faultsUntil: 25_000 },
    { artifacts: { ms: 0, state: 'ready', count: 0 } },
  ),
  'a session that is deleted while its artifacts are collected': story([], {
    channels: { stream: true, webhook: false, poll: false },
    sessions: [
      {
        at: 100,
        messages: [{ at: 10, turn: { ...PLAIN, artifacts: { ms: 3000, state: 'ready', count: 0 } } }],
        deleted: 2500,
      },
    ],
  }),
  'what an operator asks for again': story([{ do: 'say' }], {
    upkeep: {
      retention: 60_000,
      interval: 20_000,
      acts: [
        { at: 1500, do: 'retry one' },
        { at: 2200, do: 'replay' },
        { at: 3000, do: 'pause' },
      ],
    },
  }),
  'what is delivered and goes soon': story([call({})], {
    upkeep: { retention: 500, interval: 300, acts: [] },
  }),
  'stream only': story([call({})], { channels: { stream: true, webhook: false, poll: false } }),
}
