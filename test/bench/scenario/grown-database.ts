import { Client } from 'pg'
import { openDatabase } from '../../../src/sidecar/store/postgres/database.ts'
import { migrate } from '../../../src/sidecar/store/postgres/schema.ts'
import { Databases } from '../databases.ts'
import { OLD_AT as AT, oldSessionId } from '../frames.ts'
import type { Figures } from '../measure.ts'
import type { Filled } from '../options.ts'
import type { Scenario } from '../scenario.ts'
import { Stage } from '../stage.ts'
import { FRAMES, rateOf, sendBurst } from './burst.ts'
import { follow, LATENCY, PACED } from './steady.ts'

export const GROWN_DATABASE = 'postgres, grown'
const OPEN = 'postgres, open transaction'
/** Rows that are added together. */
const TOGETHER = 500_000
/** Half a minute of frames. */
const FRAMES_PACED = 3 * PACED

/** As `grown`, in PostgreSQL. The database is filled at each start, which takes minutes. */
export function grownDatabase(filled: Filled): Scenario {
  return {
    measures: [{ ...rateOf(GROWN_DATABASE, 0.9, 1), judged: '# of an empty database' }],
    async open(bench) {
      const databases = await Databases.start(bench)
      const stage = await Stage.open(bench)
      const count = bench.scaled(FRAMES)
      const facts = bench.scaled(filled.facts)
      const sessions = bench.scaled(filled.sessions)
      const full = await databases.create()
      await fill(full, { facts, sessions })
      let first = facts + 1
      const through = async (store: string, oldSessions: number): Promise<Figures> => {
        await stage.load(count, { first, oldSessions })
        first += count
        await using subject = await stage.startSubject('now', { store })
        await stage.listed()
        const { from, to } = await sendBurst(stage)
        await subject.stop()
        return { [GROWN_DATABASE]: (count / (to - from)) * 1000 }
      }
      return {
        ours: () => through(full, sessions),
        baseline: async () => through(await databases.create(), 0),
      }
    },
  }
}

/**
 * A user forgot a transaction in `psql`, or a standby reports its own: no dead row can be removed, and each write looks at
 * all versions of the rows that every transaction changes.
 */
export const openTransaction: Scenario = {
  measures: [
    {
      name: OPEN,
      unit: 'ms p50',
      digits: 2,
      judge: (ours, baseline) => ours / baseline,
      judged: '# × without it',
      floor: { at: 'most', value: 2 },
    },
  ],
  async open(bench) {
    const databases = await Databases.start(bench)
    const stage = await Stage.open(bench)
    const count = bench.scaled(FRAMES_PACED)
    const through = async (store: string): Promise<Figures> => {
      await stage.load(count)
      await using subject = await stage.startSubject('now', { store })
      const { [LATENCY]: latency = Number.NaN } = await follow(stage, subject.pid)
      await subject.stop()
      return { [OPEN]: latency }
    }
    return {
      async ours() {
        const store = await databases.create()
        const other = new Client({ connectionString: store })
        await other.connect()
        try {
          await other.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
          await other.query('SELECT count(*) FROM pg_class')
          return await through(store)
        } finally {
          await other.end()
        }
      },
      baseline: async () => through(await databases.create()),
    }
  },
}

/** Idle sessions with one settled turn each, and facts that were delivered at the first attempt. No reader checks their checksums. */
async function fill(url: string, { facts, sessions }: Filled): Promise<void> {
  process.stderr.write(
    `${GROWN_DATABASE}: fills a database with ${facts} facts of ${sessions} sessions, which takes minutes\n`,
  )
  const database = await openDatabase({ url }, (error) => {
    throw error
  })
  await migrate(database)
  await database.close()
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query('SET synchronous_commit = off')
    for (const text of FILL) await client.query(text, [sessions])
    for (let from = 1; from <= facts; from += TOGETHER) {
      const range = [from, Math.min(facts, from + TOGETHER - 1)]
      await client.query(ADD_FACTS, [...range, sessions])
      await client.query(ADD_DELIVERIES, [...range, sessions])
    }
    await client.query("UPDATE sidecar.positions SET last = $1 WHERE name = 'facts'", [facts])
    await client.query("INSERT INTO sidecar.checkpoints VALUES ('stream', $1)", [facts])
    await client.query('VACUUM ANALYZE')
  } finally {
    await client.end()
  }
}

/** The id of session `n`. */
const ID = `'${oldSessionId(0).slice(0, -12)}' || lpad(n::text, 12, '0')`
const TIMES = `'created_at', ${AT}::bigint, 'updated_at', ${AT}::bigint`
const FILL = [
  "INSERT INTO sidecar.handlers (name) SELECT 'app' WHERE $1::int > 0",
  `INSERT INTO sidecar.sessions (id, status, updated_at, raw, at_rest, revision, baseline, first_seen, read_at)
   SELECT ${ID}, 'idle', ${AT}, json_build_object('object', 'session', 'id', ${ID}, 'status', 'idle', ${TIMES}, 'title', 'Bench',
     'metadata', json_build_object('order', '42'), 'agent', json_build_object('model', 'demo'), 'required_actions', '[]'::json)::text,
     1, 1, 0, ${AT}, ${AT}
   FROM generate_series(1, $1::int) n`,
  `INSERT INTO sidecar.turns (id, session_id, created_at, raw, final, settled, final_fact, ended_frame_at, final_read_at)
   SELECT 'turn_' || n, ${ID}, ${AT}, json_build_object('object', 'turn', 'id', 'turn_' || n, 'session_id', ${ID}, 'status', 'completed',
     'created_at', ${AT}::bigint, 'completed_at', ${AT}::bigint, 'artifacts', 'none')::text, 1, 1, 1, ${AT}, ${AT}
   FROM generate_series(1, $1::int) n`,
]
const ADD_FACTS = `
  INSERT INTO sidecar.facts (pos, id, type, session_id, turn_id, at, family, seq, body, seen_stream, checksum, wanted)
  SELECT pos, 'evt_' || pos || '_' || left(md5(pos::text), 10), 'agent.message', ${ID}, 'turn_' || n, ${AT} + pos, 'transcript', pos,
    '{"type":"agent.message","seq":' || pos || ',"payload":{"text":"' || repeat('work ', 60) || '"}}', ${AT} + pos, 0, 2
  FROM generate_series($1::bigint, $2::bigint) pos, LATERAL (SELECT pos % $3::int + 1 AS n) of_session`
const ADD_DELIVERIES = `
  INSERT INTO sidecar.delivery_rows (fact_pos, handler, lane, status, attempts, log)
  SELECT pos, 1, pos % $3::int + 1, 1, 1, '{"at":${AT},"ms":3,"status":200}' FROM generate_series($1::bigint, $2::bigint) pos`
