import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { streamFactId } from '../../src/core/fact.ts'
import { checksum } from '../../src/sidecar/store/sqlite/log.ts'
import { knownMigrations, migrate } from '../../src/sidecar/store/sqlite/schema.ts'
import { OLD_AT as AT, oldSessionId } from './frames.ts'
import type { Filled } from './options.ts'
import { DATA } from './workbench.ts'

/** Rows that are committed together. */
const TOGETHER = 50_000
/** Each burst leaves its facts in the store; one that has grown by this much more than it should is built anew. */
const OVERGROWN = 1.1
const ATTEMPT = `{"at":${AT},"ms":3,"status":200}`
const TEXT = 'work '.repeat(60)

/** A store with many facts, each delivered to the handler `app`, which is kept between runs. */
export interface Grown {
  folder: string
  /** The seq after the last that was committed. */
  nextSeq: number
}

/** Whether `openGrown` finds one. */
export function hasGrown(filled: Filled): boolean {
  return existsSync(folderOf(filled))
}

/** The store of so many facts and sessions; built where there is none of today's schema. */
export function openGrown(filled: Filled): Grown {
  const { facts } = filled
  const folder = folderOf(filled)
  if (hasGrown(filled) && ask(folder, 'SELECT max(pos) FROM facts') > facts * OVERGROWN)
    rmSync(folder, { recursive: true })
  if (!hasGrown(filled)) {
    removeOutdated(filled)
    process.stderr.write(`grown: builds a store of ${facts} facts in ${folder}, which takes minutes, once\n`)
    const unfinished = `${folder}-unfinished`
    rmSync(unfinished, { recursive: true, force: true })
    mkdirSync(unfinished, { recursive: true })
    build(storeIn(unfinished), filled)
    renameSync(unfinished, folder)
  }
  return {
    folder,
    nextSeq: ask(folder, "SELECT value FROM checkpoints WHERE name = 'stream'") + 1,
  }
}

function storeIn(folder: string): string {
  return path.join(folder, 'store.db')
}

function folderOf(filled: Filled): string {
  return path.join(DATA, `${nameOf(filled)}${knownMigrations().length}`)
}

function nameOf({ facts, sessions }: Filled): string {
  return `grown-${facts}-of-${sessions}-schema-`
}

/** Migrating so much would take as long as building it. */
function removeOutdated(filled: Filled): void {
  if (!existsSync(DATA)) return
  for (const name of readdirSync(DATA))
    if (name.startsWith(nameOf(filled))) rmSync(path.join(DATA, name), { recursive: true })
}

function ask(folder: string, sql: string): number {
  using db = opened(storeIn(folder))
  return Number(db.database.prepare(sql).pluck().get())
}

function opened(file: string): Disposable & { database: Database.Database } {
  const database = new Database(file)
  return { database, [Symbol.dispose]: () => void database.close() }
}

function build(file: string, { facts, sessions }: Filled): void {
  using db = opened(file)
  const { database } = db
  // Nothing is lost with a store that is cut short in the making.
  database.pragma('journal_mode = MEMORY')
  database.pragma('synchronous = OFF')
  database.pragma('cache_size = -1000000')
  migrate(database)
  addSessions(database, sessions)
  addFacts(database, facts, sessions)
  database.prepare('INSERT INTO checkpoints (name, value) VALUES (?, ?)').run('stream', String(facts))
  database.pragma('journal_mode = WAL')
}

/** Idle sessions with one settled turn each, and the lane of each, in which nothing is pending. */
function addSessions(db: Database.Database, count: number): void {
  db.prepare("INSERT INTO handlers (number, name) VALUES (1, 'app')").run()
  const session = db.prepare(
    `INSERT INTO sessions (id, status, updated_at, raw, at_rest, revision, baseline, first_seen, read_at)
     VALUES (?, 'idle', ${AT}, ?, 1, 1, 0, ${AT}, ${AT})`,
  )
  const turn = db.prepare(
    `INSERT INTO turns (id, session_id, created_at, raw, final, settled, final_fact, ended_frame_at, final_read_at)
     VALUES (?, ?, ${AT}, ?, 1, 1, 1, ${AT}, ${AT})`,
  )
  const lane = db.prepare('INSERT INTO lanes (id, handler, key, pending, due_at) VALUES (?, 1, ?, 0, 0)')
  inSteps(db, count, (index) => {
    const id = oldSessionId(index)
    const times = { created_at: AT, updated_at: AT }
    const about = {
      title: 'Bench',
      metadata: { order: '42' },
      agent: { model: 'demo' },
      required_actions: [],
    }
    session.run(id, JSON.stringify({ object: 'session', id, status: 'idle', ...times, ...about }))
    const ended = { status: 'completed', created_at: AT, completed_at: AT, artifacts: 'none' }
    turn.run(
      `turn_${index}`,
      id,
      JSON.stringify({ object: 'turn', id: `turn_${index}`, session_id: id, ...ended }),
    )
    lane.run(index, id)
  })
}

/** Transcript facts from seq 1, at the position of their seq, delivered at the first attempt. */
function addFacts(db: Database.Database, count: number, sessions: number): void {
  const type = 'agent.message'
  const fact = db.prepare(
    `INSERT INTO facts (pos, id, type, session_id, turn_id, at, family, seq, body, seen_stream, checksum)
     VALUES (?, ?, '${type}', ?, ?, ?, 'transcript', ?, ?, ?, ?)`,
  )
  const delivery = db.prepare(
    `INSERT INTO delivery_rows (fact_pos, handler, lane, status, attempts, log) VALUES (?, 1, ?, 1, 1, '${ATTEMPT}')`,
  )
  inSteps(db, count, (pos) => {
    const lane = (pos % sessions) + 1
    const session = oldSessionId(lane)
    const turn = `turn_${lane}`
    const seq = String(pos)
    const at = AT + pos
    const body = `{"type":"${type}","internal_type":"session.agent_message","seq":${seq},"session_id":"${session}","turn_id":"${turn}","created_at":${at},"payload":{"text":"${TEXT}"}}`
    const id = streamFactId(seq, session)
    fact.run(pos, id, session, turn, at, seq, body, at, checksum({ id, type, sessionId: session, body }))
    delivery.run(pos, lane)
  })
  // One sort at the end instead of a place to find for each row.
  db.exec('INSERT INTO session_facts SELECT session_id, pos FROM facts ORDER BY 1, 2')
  db.prepare("UPDATE checkpoints SET value = ? WHERE name IN ('session_facts', 'delivery_rows')").run(
    String(count),
  )
}

/** Calls `add` with 1 to `count`, many in one transaction. */
function inSteps(db: Database.Database, count: number, add: (number: number) => void): void {
  for (let from = 1; from <= count; from += TOGETHER) {
    const last = Math.min(count, from + TOGETHER - 1)
    db.exec('BEGIN')
    for (let number = from; number <= last; number++) add(number)
    db.exec('COMMIT')
  }
}
