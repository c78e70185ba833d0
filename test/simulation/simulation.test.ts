import { describe, expect, it } from 'vitest'
import { campaign } from './campaign.ts'
import { play } from './chunk.ts'
import { run } from './run.ts'

describe('the simulated sidecar', () => {
  it('does the same twice with the same seed', { timeout: 60_000 }, async () => {
    for (const seed of [1, 2, 3]) {
      const first = await run({ seed, mode: 'liveness' })
      const second = await run({ seed, mode: 'liveness' })
      expect(second.hash).toBe(first.hash)
    }
  })

  it('does the same on every core, whatever was played before', { timeout: 120_000 }, async () => {
    const apart = await campaign({ first: 1, count: 60, mode: 'liveness', threads: 2 })
    const together = await play({ from: 1, to: 61, mode: 'liveness' })
    expect(apart.seeds).toBe(60)
    expect(apart.traces).toBe(together.traces)
  })
})
