import type { Observer } from '../../core/observer.ts'
import { CALLBACK, WAIT } from './buckets.ts'
import { LabelValues } from './label.ts'
import type { Meter } from './meter.ts'

/** The service took our answer. */
const ANSWERED = 'answered'
const OUTCOMES = [ANSWERED, 'not_delivered', 'refused', 'expired', 'cancelled', 'unknown', 'failed']

/** Function calls that we took on, and runs of the tools named `names`. */
export function toolMetrics(meter: Meter, names: readonly string[]): Pick<Observer, 'toolRun' | 'call'> {
  const tool = new LabelValues(names)
  const calls = meter.counter('tool_calls_total', 'Function calls closed, by what became of them.', {
    tool,
    outcome: new LabelValues(OUTCOMES, 50),
  })
  const runs = meter.histogram(
    'tool_call_duration_seconds',
    'How long one run of a tool took.',
    'tool',
    tool,
    CALLBACK,
  )
  const answers = meter.histogram(
    'tool_answer_duration_seconds',
    'From the creation of the action to the moment the service took the answer.',
    'tool',
    tool,
    WAIT,
  )
  return {
    toolRun: (run) => runs.observe(run.tool, run.seconds),
    call({ tool: name, outcome, seconds }) {
      calls.add(name, outcome)
      if (seconds !== null && outcome === ANSWERED) answers.observe(name, seconds)
    },
  }
}
