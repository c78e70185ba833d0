import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'pg'
import { SHARDS } from '../../../src/core/shards.ts'
import { until } from '../../support/until.ts'
import type { Child } from '../child.ts'
import type { Figures } from '../measure.ts'
import type { Queue } from '../queues.ts'
import type { Scenario } from '../scenario.ts'
import { Databases } from '../databases.ts'
import { PATIENCE, Stage } from '../stage.ts'
import type { Subject } from '../subject.ts'
import { costOf, FRAMES, rateOf, sendBurst } from './burst.ts'
import { follow, LATENCY, PACED } from './steady.ts'

const RATE = 'postgres, burst'
const PROCESSOR = 'postgres, processor time'
const DEAD = 'postgres, dead rows'
const PACE = 'postgres, latency'
/** An ordered queue does a tenth of what the others do. */
const ORDERED = 4000

/** The work of `burst` with the store in PostgreSQL, on the same cores. */
export const postgres: Scenario = {
  measures: [
    rateOf(RATE, 0.65, 1),
    {
      name: PROCESSOR,
      unit: 'CPU s/10,000',
      digits: 2,
      judge: (ours, baseline) => ours / baseline,
      judged: '# × baseline',
      floor: { at: 'most', value: 1.5 },
      goal: { value: 1.25 },
    },
    {
      name: DEAD,
      unit: 'a fact',
      digits: 2,
      judge: (ours) => ours,
      judged: '# a fact',
      floor: { at: 'most', value: 1.5 },
      goal: { value: 1 },
    },
  ],
  async open(bench) {
    const databases = await Databases.start(bench)
    const stage = await Stage.open(bench)
    const count = bench.scaled(FRAMES)
    return {
      async ours() {
        const store = await databases.create()
        await stage.load(count)
        await using subject = await stage.startSubject('now', { store })
        const { rate, processor } = await costOf(stage, count, subject.pid)
        await subject.stop()
        return { [RATE]: rate, [PROCESSOR]: processor, [DEAD]: (await died(store)) / count }
      },
      async baseline() {
        await stage.load(count)
        await using baseline = await stage.startBaseline('now')
        const { rate, processor } = await costOf(stage, count, baseline.pid)
        return { [RATE]: rate, [PROCESSOR]: processor }
      },
    }
  },
}

/** Versions of rows that an update or a delete left behind, whether they are removed yet or not. */
async function died(url: string): Promise<number> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    // A server process reports its counts as it ends.
    await pause(500)
    const { rows } = await client.query<{ died: number }>(
      `SELECT sum(n_tup_upd + n_tup_del)::float8 AS died FROM pg_stat_user_tables WHERE schemaname = 'sidecar'`,
    )
    return rows[0]?.died ?? Number.NaN
  } finally {
    await client.end()
  }
}

/** Callbacks a second of one burst through so many replicas, which share the cores with each other and with PostgreSQL. */
async function through(size: number, stage: Stage, databases: Databases, count: number): Promise<number> {
  const store = await databases.create()
  await stage.load(count)
  await using stack = new AsyncDisposableStack()
  const subjects: Subject[] = []
  for (let at = 0; at < size; at++) subjects.push(stack.use(await stage.startSubject('now', { store })))
  await until('even spread of the shards', () => areSpread(subjects), PATIENCE)
  const { from, to } = await sendBurst(stage)
  for (const subject of subjects.toReversed()) await subject.stop()
  return (count / (to - from)) * 1000
}

/** Names of rows, and what of the floor and the goal of one replica is left for several on the same cores. */
const SIZES = [
  { name: '', ofFloor: 1, ofGoal: 1 },
  { name: ', two replicas', ofFloor: 0.75, ofGoal: 0.9 },
  { name: ', three replicas', ofFloor: 0.6, ofGoal: 0.8 },
] as const

const rounded = (value: number): number => Math.round(value * 100) / 100

function against(name: string, queue: Queue, floor: number, goal: number): Scenario {
  const rows = SIZES.map(({ name: more }) => `${name}${more}`)
  return {
    measures: SIZES.map(({ ofFloor, ofGoal }, at) =>
      rateOf(rows[at] ?? name, rounded(floor * ofFloor), rounded(goal * ofGoal)),
    ),
    async open(bench) {
      const databases = await Databases.start(bench)
      const stage = await Stage.open(bench)
      const count = bench.scaled(FRAMES)
      return {
        async ours() {
          const figures: Record<string, number> = {}
          for (const [at, row] of rows.entries())
            figures[row] = await through(at + 1, stage, databases, count)
          return figures
        },
        async baseline() {
          const sent = queue === 'graphile-worker, ordered' ? bench.scaled(ORDERED) : count
          await stage.load(sent)
          // A local queue gets one job of each session, and looks for the next ones when its timer fires: 13 jobs a second.
          const local = queue !== 'graphile-worker, ordered'
          await using other = await stage.startQueue(queue, await databases.create(), local)
          const { rate } = await costOf(stage, sent, other.pid)
          return Object.fromEntries(rows.map((row) => [row, rate]))
        },
      }
    },
  }
}

/** The same burst through queues on PostgreSQL: jobs in any order, and jobs of a session in their order, as ours are. */
export const beside: readonly Scenario[] = [
  against('postgres beside graphile-worker', 'graphile-worker', 1.4, 2),
  against('postgres beside ordered graphile-worker', 'graphile-worker, ordered', 8, 15),
  against('postgres beside pg-boss', 'pg-boss', 1.4, 2),
]

/** The same burst through several replicas, beside one. */
function replicas(name: string, many: number, floor: number, goal: number): Scenario {
  return {
    measures: [rateOf(name, floor, goal)],
    async open(bench) {
      const databases = await Databases.start(bench)
      const stage = await Stage.open(bench)
      const count = bench.scaled(FRAMES)
      const rate = async (size: number): Promise<Figures> => ({
        [name]: await through(size, stage, databases, count),
      })
      return { ours: () => rate(many), baseline: () => rate(1) }
    },
  }
}

export const together: readonly Scenario[] = [
  replicas('postgres, two replicas', 2, 0.75, 0.9),
  replicas('postgres, three replicas', 3, 0.6, 0.8),
]

/** Each replica owns its part of the shards. */
async function areSpread(subjects: readonly Subject[]): Promise<boolean> {
  const owned = await Promise.all(subjects.map((subject) => subject.metric('shards_owned')))
  const all = owned.reduce((sum, one) => sum + one, 0)
  return all === SHARDS && Math.max(...owned) <= Math.ceil(SHARDS / subjects.length)
}

/** Frames one by one, beside graphile-worker as it is without a local queue, which would make it slower here. */
export const postgresLatency: Scenario = {
  measures: [
    {
      name: PACE,
      unit: 'ms added p50',
      digits: 2,
      judge: (ours, baseline) => ours / baseline,
      judged: '# of baseline',
      floor: { at: 'most', value: 0.7 },
      goal: { value: 0.4 },
    },
  ],
  async open(bench) {
    const databases = await Databases.start(bench)
    const stage = await Stage.open(bench)
    const count = bench.scaled(PACED)
    /** What a frame waits longer than with the bare pipe. */
    const added = async (child: Child | Subject): Promise<number> => {
      const latency = await latencyOf(child)
      await stage.load(count)
      return latency - (await latencyOf(await stage.startBaseline('now')))
    }
    /** The child ends here: a sidecar reconnects to the service, and would take the frames of the one that comes next. */
    const latencyOf = async (child: Child | Subject): Promise<number> => {
      await using reader = child
      const { [LATENCY]: latency = Number.NaN } = await follow(stage, reader.pid)
      return latency
    }
    return {
      async ours() {
        await stage.load(count)
        return { [PACE]: await added(await stage.startSubject('now', { store: await databases.create() })) }
      },
      async baseline() {
        await stage.load(count)
        const database = await databases.create()
        return { [PACE]: await added(await stage.startQueue('graphile-worker', database, false)) }
      },
    }
  },
}
