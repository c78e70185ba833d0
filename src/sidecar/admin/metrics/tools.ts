import type { Observer, ToolRunOutcome } from '../../../core/observer.ts'
import { CALLBACK, WAIT } from './buckets.ts'
import { LabelValues } from './label.ts'
import type { Meter } from './meter.ts'

/** The service accepted our answer. */
const ANSWERED = 'answered'
const OUTCOMES = [ANSWERED, 'not_delivered', 'refused', 'expired', 'cancelled', 'unknown', 'unresolved']
const RUNS: readonly ToolRunOutcome[] = ['output', 'deferred', 'rejected', 'failed']

/** Function calls of the ledger, and runs of the tools named `names`. */
export function toolMetrics(meter: Meter, names: readonly string[]) {
  const tool = new LabelValues(names)
  const calls = meter.counter('tool_calls_total', 'Function calls that ended, by outcome.', {
    tool,
    outcome: OUTCOMES,
  })
  const ends = meter.counter('tool_runs_total', 'Runs of a tool, by outcome.', { tool, outcome: RUNS })
  const durations = meter.histogram(
    'tool_call_duration_seconds',
    'Duration of one run of a tool.',
    { tool },
    CALLBACK,
  )
  const strange = meter.counter(
    'calls_without_tool_total',
    'Function calls that sessions waited for and that no configured tool answers.',
  )
  const answers = meter.histogram(
    'tool_answer_duration_seconds',
    'From the creation of the action to the moment the service accepted the answer.',
    { tool },
    WAIT,
  )
  return {
    toolRun({ tool, outcome, seconds }) {
      ends.add(tool, outcome)
      durations.count(seconds, tool)
    },
    call({ tool, outcome, seconds }) {
      calls.add(tool, outcome)
      if (seconds !== null && outcome === ANSWERED) answers.count(seconds, tool)
    },
    callWithoutTool: () => strange.add(),
  } satisfies Partial<Observer>
}
