import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { Databases } from './databases.ts'
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

/** One burst with the sidecar under `--cpu-prof`: functions and files by time. `isShared`: its store is a database. */
export async function printProfile(bench: Workbench, isShared: boolean): Promise<string> {
  const folder = bench.folder()
  const nodeOptions = ['--cpu-prof', `--cpu-prof-dir=${folder}`, `--cpu-prof-interval=${INTERVAL}`]
  const store = isShared ? await (await Databases.start(bench)).create() : null
  const { from, to, callbacks, commits, committing } = await burstOnce(bench, nodeOptions, store)
  const file = readdirSync(folder).find((name) => name.endsWith('.cpuprofile'))
  if (file === undefined) throw new Error('no profile was written')
  const profile = Value.Parse(Profile, JSON.parse(readFileSync(path.join(folder, file), 'utf8')))
  const { total, self, file: byFile, inclusive } = sumTimes(profile, from * 1000, to * 1000)
  const each = (microseconds: number): string => (microseconds / callbacks).toFixed(1)
  const head =
    `${callbacks} callbacks in ${((to - from) / 1000).toFixed(2)} s under the profiler, ${each(total)} µs each; ` +
    `${commits} commits of ${((committing / commits) * 1000).toFixed(2)} ms, ${each(committing * 1e6)} µs each callback`
  const list = (title: string, sums: ReadonlyMap<string, number>): string => {
    const rows = [...sums].toSorted(([, a], [, b]) => b - a).slice(0, SHOWN)
    const lines = rows.map(([name, time]) => {
      const share = `${((time / total) * 100).toFixed(1)}%`
      return `${share.padStart(6)}  ${each(time).padStart(7)}  ${name}`
    })
    return [` SHARE  µs EACH  ${title}`, ...lines].join('\n')
  }
  const lists = [
    list('FUNCTION, ITSELF', self),
    list('FILE, ITSELF', byFile),
    list('FUNCTION OF OURS, WITH WHAT IT CALLS', inclusive),
  ]
  return `${[head, ...lists].join('\n\n')}\n`
}

interface Times {
  total: number
  /** Microseconds by function, by file, and by function of the project's with all that it calls. */
  self: Map<string, number>
  file: Map<string, number>
  inclusive: Map<string, number>
}

/** Adds up the samples between two moments of the monotonic clock, which is the profiler's too. */
function sumTimes({ nodes, samples, timeDeltas, startTime }: Profile, from: number, to: number): Times {
  const times: Times = { total: 0, self: new Map(), file: new Map(), inclusive: new Map() }
  const stacks = stacksOf(nodes)
  let at = startTime
  for (const [index, id] of samples.entries()) {
    const delta = timeDeltas[index] ?? 0
    at += delta
    const stack = stacks.get(id)
    if (stack === undefined || at < from || at > to) continue
    times.total += delta
    add(times.self, stack.label, delta)
    add(times.file, stack.file, delta)
    for (const label of stack.ours) add(times.inclusive, label, delta)
  }
  return times
}

interface Stack {
  label: string
  file: string
  /** Functions of the project on the way to here, each once. */
  ours: ReadonlySet<string>
}

/** The protocol lists a node before its children. */
function stacksOf(nodes: readonly Node[]): Map<number, Stack> {
  const stacks = new Map<number, Stack>()
  const callers = new Map<number, Stack>()
  for (const { id, callFrame, children = [] } of nodes) {
    const stack = describe(callFrame, callers.get(id))
    stacks.set(id, stack)
    for (const child of children) callers.set(child, stack)
  }
  return stacks
}

function describe({ functionName, url, lineNumber }: Node['callFrame'], caller: Stack | undefined): Stack {
  const name = functionName === '' ? '(anonymous)' : functionName
  const ours = caller?.ours ?? new Set()
  if (url !== '') {
    const file = url.startsWith('file:') ? path.relative(PROJECT, fileURLToPath(url)) : url
    const label = `${name} ${file}:${lineNumber + 1}`
    return { label, file, ours: file.startsWith('src') ? new Set([...ours, label]) : ours }
  }
  if (caller === undefined || name.startsWith('(')) return { label: name, file: name, ours }
  // Native code has no source position: it is named by its caller.
  return { label: `${name}, native, of ${caller.label}`, file: caller.file, ours }
}

function add(sums: Map<string, number>, key: string, amount: number): void {
  sums.set(key, (sums.get(key) ?? 0) + amount)
}
