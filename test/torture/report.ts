import type { Outcome } from './round.ts'
import { Tally } from './tally.ts'

/** What a table's line is made of: its name, and what was counted under that name or names that begin with it. */
const LINES: readonly (readonly [line: string, name: string])[] = [
  ['lives', 'lives'],
  ['turns', 'turns'],
  ['facts', 'facts'],
  ['deliveries', 'deliveries'],
  ['callbacks', 'callbacks'],
  ['repeated attempts', 'repeated attempts'],
  ['ids seen with two bodies', 'ids with two bodies'],
  ['dead letters, brought back', 'dead letters'],
  ['calls', 'calls'],
  ['calls answered', 'calls answered'],
  ['tool runs', 'tool runs'],
  ['answers posted with two bodies', 'answers with two bodies'],
  ['databases examined after a kill', 'databases examined after a kill'],
  ['answered webhooks examined', 'answered webhooks examined'],
  ['refusals examined', 'refusals examined'],
  ['writes examined', 'writes examined'],
  ['outcomes examined', 'outcomes examined'],
  ['fencings examined', 'fencings examined'],
  ['counts compared', 'counts compared'],
  ['places searched for secrets', 'places searched for secrets'],
]

const GROUPS: readonly (readonly [title: string, prefix: string])[] = [
  ['ends of lives', 'killed by '],
  ['ended by itself', 'ended by itself with '],
  ['reasons', 'ended by itself because '],
  ['frozen', 'stopped by '],
  ['partitions', 'partition from '],
  ['database', 'database '],
  ['disk', 'disk '],
  ['token', 'token '],
  ['service', 'service killed'],
  ['proxy faults', 'proxy fault '],
  ['service faults', 'service fault '],
  ['handler faults', 'handler fault '],
  ['tool faults', 'tool fault '],
]

const WIDE = 32

/** All rounds in one table. */
export function table(outcomes: readonly Outcome[], seconds: number): string {
  const tally = new Tally()
  for (const outcome of outcomes) tally.join(outcome.tally)
  const lost = outcomes.flatMap(({ faults }) => faults).filter(({ invariant }) => invariant === 'I1').length
  const lines = [
    row('rounds', `${outcomes.length} in ${Math.round(seconds)} s`),
    ...GROUPS.flatMap(([title, prefix]) => group(tally, title, prefix)),
    ...LINES.map(([line, name]) => row(line, String(tally.get(name)))),
    row('lost', String(lost)),
  ]
  for (const { name, unit, slope, growth, margin, first, last } of outcomes.flatMap(({ slopes }) => slopes)) {
    const figures = `${sign(slope)} ${unit}/min, ${sign(growth)} over the second half (margin ${margin})`
    lines.push(row(`slope of ${name}`, `${figures}, ${first.toFixed(1)} to ${last.toFixed(1)}`))
  }
  return lines.join('\n')
}

/** What was wrong in a round, and how to look at it and play it again. */
export function describeFaults({ seed, faults, folder }: Outcome, more = ''): string {
  const listed = faults.slice(0, 20).map(({ invariant, message }) => `  ${invariant}: ${message}`)
  return [
    `round ${seed}: ${faults.length} violations`,
    ...listed,
    `  kept in ${folder}`,
    `  again: npm run torture -- --rounds 1 --seed ${seed} ${more}`.trimEnd(),
  ].join('\n')
}

function group(tally: Tally, title: string, prefix: string): string[] {
  const counts = tally.of(prefix)
  if (counts.length === 0) return []
  const total = counts.reduce((sum, [, count]) => sum + count, 0)
  if (counts.length === 1 && counts[0]?.[0] === '') return [row(prefix, String(total))]
  return [row(title, `${total}: ${counts.map(([name, count]) => `${name} ${count}`).join(', ')}`)]
}

function row(name: string, value: string): string {
  return `${name.padEnd(WIDE)} ${value}`
}

function sign(value: number): string {
  return `${value < 0 ? '' : '+'}${value.toFixed(2)}`
}
