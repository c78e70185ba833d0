import { describe, expect, it } from 'vitest'
import { runScenarios } from './run.ts'
import { emulatorStream } from './scenario/emulator-stream.ts'
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
