import { expect, it } from 'vitest'
import { NOTHING } from './faults.ts'
import { unsettled, unsound } from './oracle/rest.ts'
import { APP, PLAIN, type Scenario } from './scenario.ts'
import { Simulation } from './simulation.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const DAYS = 30
/** Our wall clock is set so far ahead and back, each day by another jump. */
const JUMPS = [0, 3, -5, 11, -8].map((hours) => hours * 60 * MINUTE)

/** A session with one turn each day, early and while the house is awake. */
const MONTH: Scenario = {
  channels: { stream: true, webhook: false, poll: true },
  startFrom: 'beginning',
  handlers: [APP],
  sessions: Array.from({ length: DAYS }, (_, day) => ({
    at: day * DAY + 2 * MINUTE,
    messages: [{ at: 10, turn: { ...PLAIN, steps: [{ do: 'say' as const }, { do: 'say' as const }] } }],
    deleted: null,
  })),
  skew: 0,
  faultsUntil: DAYS * DAY,
  upkeep: null,
}

it('keeps all pending deliveries of a handler that is unreachable for 30 days, through nights asleep and jumps of the clock by hours', async () => {
  const simulation = new Simulation(1, MONTH, NOTHING)
  const { agenda, db, network, sites, trace, wall } = simulation
  const over = (): boolean => trace.violation !== null
  const one = (query: string): number => Number(db.prepare<[], number>(query).pluck().get())
  const timers: number[] = []
  network.appUnreachable = true
  // The oracle has to know that not all is well.
  sites.fired.push({ passage: 0, site: 'weather', when: 'before', fault: 'app_unreachable' })
  for (let day = 0; day < DAYS && !over(); day++) {
    wall.offset = JUMPS[day % JUMPS.length] ?? 0
    await agenda.runUntil(simulation.begin + day * DAY + 10 * MINUTE, over)
    timers.push(simulation.life?.timers ?? Infinity)
    if (simulation.life !== null) simulation.life.asleepUntil = simulation.begin + (day + 1) * DAY
  }
  await agenda.runUntil(simulation.begin + DAYS * DAY, over)
  expect(trace.violation).toBeNull()
  expect(unsound(simulation)).toBeNull()
  const facts = one('SELECT count(*) FROM facts')
  // At the least: made, started, said twice, ended, settled.
  expect(facts).toBeGreaterThan(DAYS * 6)
  expect(one('SELECT count(*) FROM deliveries WHERE status = 0')).toBe(facts)
  expect(one('SELECT max(attempts) FROM deliveries')).toBe(0)
  // What waits in memory does not grow with the days.
  expect(Math.max(...timers)).toBeLessThan(20)

  simulation.calm()
  const back = agenda.now
  while (!over() && agenda.now < back + 10 * MINUTE && unsettled(simulation) !== null)
    await agenda.runUntil(agenda.now + 1000, over)
  expect(trace.violation).toBeNull()
  expect(unsettled(simulation)).toBeNull()
  expect(one('SELECT count(*) FROM deliveries WHERE status = 1')).toBe(one('SELECT count(*) FROM facts'))
  expect(simulation.crashes).toBe(0)
  simulation.close()
})
