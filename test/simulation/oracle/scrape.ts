import type { Life } from '../life.ts'
import type { Fault } from '../../checker/history.ts'
import { secretIn } from './secrets.ts'

/** I13 and I14: what a scrape of the metrics says. */
export async function scrapeFault({ metrics, counts, number }: Life): Promise<Fault | null> {
  if (metrics === null) return null
  const text = await metrics.registry.metrics()
  const secret = secretIn(text)
  if (secret !== undefined) return { invariant: 'I13', message: `the metrics have "${secret}" in them` }
  const pairs: [string, number][] = [
    ['facts_total', counts.facts],
    ['tool_calls_total', sum(counts.calls)],
    ['calls_without_tool_total', sum(counts.strange)],
    ['callback_attempts_total', sum(counts.callbacks)],
  ]
  for (const [name, counted] of pairs) {
    const shown = totalOf(text, `session_sidecar_${name}`)
    if (shown !== counted)
      return { invariant: 'I14', message: `life ${number} shows ${shown} as ${name} and counted ${counted}` }
  }
  return null
}

function sum(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((total, count) => total + count, 0)
}

/** All series of one name together. */
function totalOf(text: string, name: string): number {
  const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
  return lines.reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' '))), 0)
}
