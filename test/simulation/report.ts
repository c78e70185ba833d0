import type { Broken, Tally } from './tally.ts'

/** Processor time, milliseconds, of all threads. */
export function cpuSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}

function number(value: number): string {
  return Math.round(value).toLocaleString('en-GB')
}

/** One line while it goes on. `cpu`: milliseconds so far. */
export function progressLine({ seeds, broken }: Tally, cpu: number): string {
  return `${number(seeds)} seeds, ${number((seeds / cpu) * 60_000)} a minute and core, ${broken.size} broken`
}

/** What was tried, in a few lines. */
export function summary(tally: Tally, cpu: number): string[] {
  const { seeds, broken, passages, lives, happened, crashed, faults, traces } = tally
  const each = (sum: number): string => `${number(sum)} (${(sum / seeds).toFixed(1)} a seed)`
  let all = 0
  for (const times of faults.values()) all += times
  const kinds = [...faults].sort(([, a], [, b]) => b - a).map(([fault, times]) => `${fault} ${number(times)}`)
  return [
    `${number(seeds)} seeds ${broken.size === 0 ? 'held' : 'played'}: ` +
      `${number((seeds / cpu) * 60_000)} a minute and core, ${(cpu / seeds).toFixed(1)} ms of processor each`,
    `passages through ports: ${each(passages)}; things that happened: ${each(happened)}; starts: ${each(lives)}`,
    `crashes: ${each(faults.get('crash') ?? 0)}, at ${crashed.size} places; all faults: ${each(all)}`,
    `by kind: ${kinds.join(', ')}`,
    `all traces: ${traces.toString(16).padStart(8, '0')}, for these seeds the same everywhere`,
  ]
}

/** The command that shows a violation again. */
export function replayLine({ seed, mode, faults, invariant }: Broken, replicas: number | null): string {
  const shared = replicas === null ? '' : ` --replicas ${replicas}`
  const given = invariant === 'repeat' ? '' : ` --faults '${faults}'`
  return `npm run simulate -- --seed ${seed}${shared} --mode ${mode}${given}`
}
