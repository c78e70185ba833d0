import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import type { Fault } from '../checker/history.ts'
import { sampleOf } from './oracle/metrics.ts'
import type { Sidecar } from './sidecar.ts'
import { slopeOf } from './slope.ts'

interface Measure {
  name: string
  unit: string
  /** How much more there may be at the end of the second half than at its beginning. */
  margin: number
  /** null: not to be had here. */
  read: (pid: number, metrics: string) => number | null
}

export interface Slope {
  name: string
  unit: string
  /** Per minute, over the second half. */
  slope: number
  /** What the slope comes to over the second half. */
  growth: number
  margin: number
  first: number
  last: number
}

const MIB = 1024 * 1024
const EACH = 1000
/** How long it may take until idle connections are closed, milliseconds. */
const RETURN = 40_000
/** The connection of the client, and of the service's pings. */
const LEFT_OVER = 4

/** What a process that is asked holds, counted by name. */
export type Rest = Readonly<Record<string, number>>

/** A process that is asked, and whose descriptors the machine knows. */
export type Asked = Pick<Sidecar, 'ask'> & { readonly life: { readonly pid: number } }

/** A heap that is collected when it likes wobbles by some MiB; what is counted does not. */
const MEASURES: readonly Measure[] = [
  { name: 'resident memory', unit: 'MiB', margin: 12, read: (pid) => residentOf(pid) },
  {
    name: 'heap in use',
    unit: 'MiB',
    margin: 8,
    read: (_, metrics) => sampleOf(metrics, 'nodejs_heap_size_used_bytes') / MIB,
  },
  { name: 'descriptors', unit: '', margin: 2, read: (pid) => descriptorsOf(pid) },
  {
    name: 'timers',
    unit: '',
    margin: 3,
    read: (_, metrics) => sampleOf(metrics, 'nodejs_active_resources', { type: 'Timeout' }),
  },
  {
    name: 'other resources',
    unit: '',
    margin: 3,
    read: (_, metrics) =>
      sampleOf(metrics, 'nodejs_active_resources') -
      sampleOf(metrics, 'nodejs_active_resources', { type: 'Timeout' }),
  },
]

/** Looks at a life that is left alone, each second for `ms` milliseconds. */
export async function watch(sidecar: Asked, ms: number): Promise<Slope[]> {
  const { pid } = sidecar.life
  const points = MEASURES.map((): [number, number][] => [])
  const begun = performance.now()
  for (let at = 0; at < ms; at = performance.now() - begun) {
    const { text } = await sidecar.ask('GET', '/metrics')
    for (const [index, { read }] of MEASURES.entries()) {
      const value = read(pid, text)
      if (value !== null) points[index]?.push([at / 60_000, value])
    }
    await pause(EACH)
  }
  return MEASURES.flatMap((measure, index) => slopeIn(measure, points[index] ?? []))
}

function slopeIn({ name, unit, margin }: Measure, points: [number, number][]): Slope[] {
  const half = points.slice(Math.floor(points.length / 2))
  const [first, last] = [half[0], half.at(-1)]
  if (first === undefined || last === undefined) return []
  const slope = slopeOf(half)
  return [{ name, unit, slope, growth: slope * (last[0] - first[0]), margin, first: first[1], last: last[1] }]
}

/** I11: nothing grows while the same work goes on. */
export function grows(slopes: readonly Slope[]): Fault[] {
  return slopes
    .filter(({ growth, margin }) => growth > margin)
    .map(({ name, growth, margin, unit }) => ({
      invariant: 'I11',
      message: `${name} grew by ${growth.toFixed(1)} ${unit} in the second half; the margin is ${margin}`,
    }))
}

/** Descriptors and timers when idle, which must return to their former number. */
export async function restOf(sidecar: Asked): Promise<Rest> {
  const { text } = await sidecar.ask('GET', '/metrics')
  const counted = MEASURES.filter(({ unit }) => unit === '')
  return Object.fromEntries(counted.map(({ name, read }) => [name, read(sidecar.life.pid, text) ?? 0]))
}

/** I11: when idle there is no more than without the work. Idle connections close by themselves within `patience` milliseconds. */
export async function returned(sidecar: Asked, without: Rest, patience = RETURN): Promise<Fault[]> {
  const limit = performance.now() + patience
  for (;;) {
    const now = await restOf(sidecar)
    const more = Object.entries(now).filter(([name, count]) => count > (without[name] ?? 0) + LEFT_OVER)
    if (more.length === 0 || performance.now() > limit)
      return more.map(([name, count]) => ({
        invariant: 'I11',
        message: `when idle there are ${count} ${name}, and ${without[name]} without the work`,
      }))
    await pause(250)
  }
}

function residentOf(pid: number): number | null {
  const file = `/proc/${pid}/status`
  if (!existsSync(file)) return null
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(file, 'utf8'))?.[1] ?? 0) / 1024
}

function descriptorsOf(pid: number): number | null {
  const folder = `/proc/${pid}/fd`
  return existsSync(folder) ? readdirSync(folder).length : null
}
