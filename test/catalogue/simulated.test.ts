import { describe, expect, it } from 'vitest'
import type { Fault, Plan } from '../simulation/faults.ts'
import { FIXED } from '../simulation/fixed.ts'
import { run, type Outcome } from '../simulation/run.ts'
import { PLAIN, type Scenario } from '../simulation/scenario.ts'

/** The weather is asked twice a second. */
const LOOKS = 2
const SEED = 11

function fixed(name: string): Scenario {
  const scenario = FIXED[name]
  if (scenario === undefined) throw new Error(`there is no scenario "${name}"`)
  return scenario
}

/** Plays `scenario` with `fault` at the `nth` look at the weather, and nothing else. */
async function weather(scenario: Scenario, fault: Fault, nth: number): Promise<string> {
  let looks = 0
  const plan: Plan = { decide: (_, site) => (site === 'weather' && ++looks === nth ? fault : null) }
  const outcome = await run({ seed: SEED, mode: 'liveness', scenario, plan })
  expect(outcome.fired.map((fired) => fired.fault)).toEqual([fault])
  return said(outcome)
}

const said = ({ violation }: Outcome): string =>
  violation === null ? 'held' : `${violation.invariant}: ${violation.message}`

describe('an event loop that stands for a minute', () => {
  // [fault process-5]
  it.each(['plain turn', 'two calls at once', 'a call that its app puts off', 'polling only'])(
    'claims nothing twice and dead-letters nothing, whenever it comes: %s',
    async (name) => {
      for (let nth = 1; nth <= 7; nth++) expect(await weather(fixed(name), 'asleep', nth)).toBe('held')
    },
  )
})

describe('a wall clock that jumps by an hour', () => {
  // [fault process-8]
  it.each(
    ['stream only', 'polling only', 'a session that is deleted while its artifacts are collected'].flatMap(
      (name) => [[name, 'clock_ahead'] as const, [name, 'clock_back'] as const],
    ),
  )('makes no burst and ends nothing early, whenever it comes: %s, %s', async (name, jump) => {
    for (let nth = 1; nth <= 7; nth++) expect(await weather(fixed(name), jump, nth)).toBe('held')
  })
})

describe('a service that is unreachable for an hour', () => {
  const MINUTE = 60 * LOOKS
  const GONE = 10
  const BACK = GONE + 60 * MINUTE
  const turn = { ...PLAIN, artifacts: { ms: 50, state: 'ready' as const, count: 1 } }

  // [fault state-8]
  it.each([
    ['stream', { stream: true, webhook: false, poll: false }],
    ['polling', { stream: false, webhook: false, poll: true }],
    ['everything', { stream: true, webhook: true, poll: true }],
  ])(
    'loses nothing, causes no storm of requests afterwards, and few requests meanwhile: %s',
    async (_, channels) => {
      const scenario: Scenario = {
        ...fixed('plain turn'),
        channels,
        sessions: [100, 600_000, 2_400_000].map((at) => ({
          at,
          messages: [{ at: 10, turn }],
          deleted: null,
        })),
        faultsUntil: 3_700_000,
      }
      let looks = 0
      const asked = new Map<number, number>()
      const plan: Plan = {
        decide(_passage, site, when, possible) {
          if (site === 'weather') {
            looks++
            return looks === GONE ? 'service_unreachable' : null
          }
          if (!site.startsWith('http ') || when !== 'before' || / (callback|tool)$/.test(site)) return null
          asked.set(looks, (asked.get(looks) ?? 0) + 1)
          return looks >= GONE && looks < BACK && possible.includes('refused') ? 'refused' : null
        },
      }
      const outcome = await run({ seed: SEED, mode: 'liveness', scenario, plan })
      expect(said(outcome)).toBe('held')
      const requests = [...asked].filter(([look]) => look > GONE + MINUTE && look < BACK)
      expect(requests.length).toBeGreaterThan(0)
      const meanwhile = requests.reduce((sum, [, count]) => sum + count, 0)
      // A minute; over all channels less than one a second.
      expect(meanwhile / 59).toBeLessThan(60)
      // Half seconds after its return.
      const after = [...asked].filter(([look]) => look >= BACK).map(([, count]) => count)
      expect(Math.max(...after)).toBeLessThan(30)
    },
  )
})
