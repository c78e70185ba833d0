import { describe, expect, it } from 'vitest'
import { runScenarios } from './run.ts'
import { emulatorStream } from './scenario/emulator-stream.ts'
import { postgresLatency } from './scenario/postgres.ts'
import { relay } from './scenario/relay.ts'
import { Workbench } from './workbench.ts'

/** Part of what the bench sends. */
const SCALE = 0.01

describe('a scenario with frames of the bench’s own service', () => {
  it.each([relay, emulatorStream])('is measured on both sides: $measures.0.name', async (scenario) => {
    await using bench = new Workbench(SCALE)
    const { outcomes, faults } = await runScenarios(
      [scenario],
      () => true,
      1,
      bench,
      () => undefined,
    )
    expect(faults).toEqual([])
    expect(outcomes.flatMap(({ ours, baseline }) => [...ours, ...baseline])).toEqual([
      expect.any(Number),
      expect.any(Number),
    ])
    expect(outcomes.flatMap(({ judged }) => judged).every(Number.isFinite)).toBe(true)
  })
})

describe('the latency with the store in PostgreSQL', () => {
  // The other side is a package that the bench installs.
  it('is measured when another reader of the service takes the place of the sidecar', async () => {
    // Three seconds of frames: after two, a sidecar would reconnect.
    await using bench = new Workbench(0.3)
    const contest = await postgresLatency.open(bench)
    expect(await contest.ours()).toEqual({ 'postgres, latency': expect.any(Number) as number })
  })
})
