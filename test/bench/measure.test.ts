import { describe, expect, it } from 'vitest'
import { judge, type Measure, type Repetition } from './measure.ts'
import { renderOutcomes } from './report.ts'

const LATENCY: Measure = {
  name: 'latency',
  unit: 'ms',
  digits: 2,
  judge: (ours, baseline) => ours - baseline,
  judged: 'added # ms',
  floor: { at: 'most', value: 0.5, fdatasyncs: 2.5 },
  goal: { value: 0.3, fdatasyncs: 2 },
}
const BURST: Measure = {
  name: 'burst',
  unit: 'callbacks/s',
  digits: 0,
  judge: (ours, baseline) => ours / baseline,
  judged: '# of baseline',
  floor: { at: 'least', value: 0.75 },
  goal: { value: 1 },
}

const repetition = (name: string, ours: number, baseline: number, fdatasync = 0.4): Repetition => ({
  ours: { [name]: ours },
  baseline: { [name]: baseline },
  fdatasync,
})

describe('a gate of the bench', () => {
  it('is scaled by the fdatasync that was measured beside it', () => {
    const added = (ms: number, fdatasync: number): string =>
      judge(LATENCY, [repetition('latency', 0.5 + ms, 0.5, fdatasync)]).verdict
    expect([added(1.4, 0.4), added(1.6, 0.4), added(1.6, 0.5), added(1, 0.4)]).toEqual([
      'met',
      'MISS',
      'met',
      'goal met',
    ])
  })

  it('counts the median of the repetitions, each against its own baseline', () => {
    const outcome = judge(BURST, [
      repetition('burst', 100, 100),
      repetition('burst', 50, 100),
      repetition('burst', 80, 100),
    ])
    expect(outcome.judged).toEqual([1, 0.5, 0.8])
    expect(outcome.verdict).toBe('met')
  })

  it('is missed without a measurement', () => {
    expect(judge(BURST, [repetition('other', 100, 100)]).verdict).toBe('MISS')
  })

  it('shows its result beside its floor and its goal', () => {
    const table = renderOutcomes([judge(LATENCY, [repetition('latency', 2.5, 0.5)])])
    expect(table).toContain('added 2.00 ms')
    expect(table).toContain('≤ 1.50 (0.5 + 2.5 × fdatasync)')
    expect(table).toContain('≤ 1.10 (0.3 + 2 × fdatasync)')
    expect(table).toContain('MISS')
  })
})
