import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { burstOnce } from './scenario/burst.ts'
import type { Workbench } from './workbench.ts'

/** Lines of each list. */
const SHOWN = 40
/** Microseconds between two samples. */
const INTERVAL = 250
const PROJECT = path.join(import.meta.dirname, '../..')

/** What `--cpu-prof` writes (the Profiler domain of the DevTools protocol); times in microseconds. */
const Profile = Type.Object({
  startTime: Type.Number(),
  nodes: Type.Array(
    Type.Object({
      id: Type.Integer(),
      callFrame: Type.Object({ functionName: Type.String(), url: Type.String(), lineNumber: Type.Integer() }),
      children: Type.Optional(Type.Array(Type.Integer())),
    }),
  ),
  samples: Type.Array(Type.Integer()),
  timeDeltas: Type.Array(Type.Number()),
})

type Profile = Type.Static<typeof Profile>
type Node = Profile['nodes'][number]

/** One burst with the sidecar under `--cpu-prof`: functions and files by the time spent in themselves. */
export async function printProfile(bench: Workbench): Promise<string> {
  const folder = bench.folder()
  const nodeOptions = ['--cpu-prof', `--cpu-prof-dir=${folder}`, `--cpu-prof-interval=${INTERVAL}`]
  const { from, to, count } = await burstOnce(bench, nodeOptions)
  const file = readdirSync(folder).find((name) => name.endsWith('.cpuprofile'))
  if (file === undefined) throw new Error('no profile was written')
  const profile = Value.Parse(Profile, JSON.parse(readFileSync(path.join(folder, file), 'utf8')))
  const self = selfTimes(profile, from * 1000, to * 1000)
  const seconds = (to - from) / 1000
  const title = `${count} callbacks in ${seconds.toFixed(2)} s, under the profiler; per callback ${((seconds / count) * 1e6).toFixed(0)} µs\n`
  return [
    title,
    ...list('FUNCTION', self, count, ({ label }) => label),
    '',
    ...list('FILE', self, count, ({ file }) => file),
    '',
  ].join('\n')
}

interface SelfTime {
  label: string
  file: string
  microseconds: number
}

/** Time by node between two moments of the monotonic clock, which is the profiler's too. */
function selfTimes(profile: Profile, from: number, to: number): SelfTime[] {
  const byId = new Map(profile.nodes.map((node) => [node.id, node]))
  const parents = new Map<number, Node>()
  for (const node of profile.nodes) for (const child of node.children ?? []) parents.set(child, node)
  const times = new Map<number, number>()
  let at = profile.startTime
  for (const [index, id] of profile.samples.entries()) {
    const delta = profile.timeDeltas[index] ?? 0
    at += delta
    if (at >= from && at <= to) times.set(id, (times.get(id) ?? 0) + delta)
  }
  return [...times].flatMap(([id, microseconds]) => {
    const node = byId.get(id)
    return node === undefined ? [] : [{ ...describe(node, parents), microseconds }]
  })
}

function describe(node: Node, parents: ReadonlyMap<number, Node>): { label: string; file: string } {
  const { functionName, url, lineNumber } = node.callFrame
  const name = functionName === '' ? '(anonymous)' : functionName
  if (url !== '') return { label: `${name} ${fileOf(url)}:${lineNumber + 1}`, file: fileOf(url) }
  if (name.startsWith('(')) return { label: name, file: name }
  // Native code has no place of its own: it is told by who called it.
  let caller = parents.get(node.id)
  while (caller !== undefined && caller.callFrame.url === '') caller = parents.get(caller.id)
  const place = caller === undefined ? '' : fileOf(caller.callFrame.url)
  return { label: `[native ${name}] < ${caller?.callFrame.functionName ?? ''} ${place}`, file: place }
}

function fileOf(url: string): string {
  return url.startsWith('file:') ? path.relative(PROJECT, fileURLToPath(url)) : url
}

function list(
  title: string,
  self: readonly SelfTime[],
  count: number,
  key: (one: SelfTime) => string,
): string[] {
  const total = self.reduce((sum, { microseconds }) => sum + microseconds, 0)
  const sums = new Map<string, number>()
  for (const one of self) sums.set(key(one), (sums.get(key(one)) ?? 0) + one.microseconds)
  const rows = [...sums].toSorted(([, a], [, b]) => b - a).slice(0, SHOWN)
  return [
    `  SHARE  µs EACH  ${title}`,
    ...rows.map(([name, time]) => {
      const share = `${((time / total) * 100).toFixed(1)}%`
      return `${share.padStart(7)}  ${(time / count).toFixed(2).padStart(7)}  ${name}`
    }),
  ]
}
