import type { Observer, ToolRunOutcome } from '../../../core/observer.ts'
import { CALLBACK, WAIT } from './buckets.ts'
import { LabelValues } from './label.ts'
import type { Meter } from './meter.ts'

/** The service took our answer. */
const ANSWERED = 'answered'
const OUTCOMES = [ANSWERED, 'not_delivered', 'refused', 'expired', 'cancelled', 'unknown', 'unresolved']
const RUNS: readonly ToolRunOutcome[] = ['output', 'deferred', 'rejected', 'failed']

/** Function calls that we took on, and runs of the tools named `names`. */
export function toolMetrics(
  meter: Meter,
  names: readonly string[],
): Pick<Observer, 'toolRun' | 'call' | 'callWithoutTool'> {
  const tool = new LabelValues(names)
  const calls = meter.counter('tool_calls_total', 'Function calls closed, by what became of them.', {
    tool,
    outcome: new LabelValues(OUTCOMES, 50),
  })
  const ends = meter.counter('tool_runs_total', 'Runs of a tool, by how they ended.', {
    tool,
    outcome: new LabelValues(RUNS),
  })
  const durations = meter.histogram(
    'tool_call_duration_seconds',
    'How long one run of a tool took.',
    'tool',
    tool,
    CALLBACK,
  )
  const strange = meter.counter(
    'calls_without_tool_total',
    'Function calls that sessions waited for and that no configured tool answers.',
    {},
  )
  const answers = meter.histogram(
    'tool_answer_duration_seconds',
    'From the creation of the action to the moment the service took the answer.',
    'tool',
    tool,
    WAIT,
  )
  strange.expect('')
  for (const name of names) {
    for (const outcome of OUTCOMES) calls.expect(name, outcome)
    for (const outcome of RUNS) ends.expect(name, outcome)
  }
  return {
    toolRun({ tool: name, outcome, seconds }) {
      ends.add(name, outcome)
      durations.observe(name, seconds)
    },
    call({ tool: name, outcome, seconds }) {
      calls.add(name, outcome)
      if (seconds !== null && outcome === ANSWERED) answers.observe(name, seconds)
    },
    callWithoutTool: () => strange.add(''),
  }
}
