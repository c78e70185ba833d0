import Database from 'better-sqlite3'

export interface FactRow {
  pos: number
  id: string
  type: string
  session_id: string | null
  turn_id: string | null
  family: 'state' | 'transcript'
  seq: string | null
  body: string
}

export interface DeliveryRow {
  fact_id: string
  type: string
  handler: string
  session_id: string | null
  status: number
  attempts: number
  log: string
}

export interface CallRow {
  call_id: string
  name: string
  state: string
  result_kind: 'output' | 'error' | null
  result_text: string | null
  outcome: string | null
  error: string | null
  finished_at: number | null
  ended_at: number | null
}

export interface SessionRow {
  id: string
  status: string
  read_at: number
  deleted_at: number | null
}

export interface TurnRow {
  id: string
  session_id: string
  raw: string | null
}

/** What the program stored, at one moment. */
export interface Pages {
  facts: FactRow[]
  deliveries: DeliveryRow[]
  calls: CallRow[]
  sessions: SessionRow[]
  turns: TurnRow[]
  openActions: { call_id: string; session_id: string }[]
  /** Secrets of the webhook subscriptions: these alone are kept here, and nowhere else. */
  webhookSecrets: string[]
  hinted: Set<string>
  /** Of the stream; 0 before the first frame. */
  cursor: number
}

/** The same on both engines. */
export const QUERIES = {
  facts: 'SELECT pos, id, type, session_id, turn_id, family, seq, body FROM facts ORDER BY pos',
  deliveries: `SELECT f.id AS fact_id, f.type, h.name AS handler, f.session_id, d.status, d.attempts, d.log
    FROM deliveries d JOIN facts f ON f.pos = d.fact_pos JOIN handlers h ON h.number = d.handler`,
  calls: 'SELECT * FROM calls',
  sessions: 'SELECT id, status, read_at, deleted_at FROM sessions',
  turns: 'SELECT id, session_id, raw FROM turns',
  openActions: `SELECT a.call_id, a.session_id FROM actions a LEFT JOIN sessions s ON s.id = a.session_id
    WHERE a.resolved_at IS NULL AND s.deleted_at IS NULL`,
  webhookSecrets: 'SELECT secret FROM subscriptions',
  hinted: 'SELECT session_id FROM hints',
  cursor: "SELECT value FROM checkpoints WHERE name = 'stream'",
  pending: 'SELECT count(*) FROM deliveries WHERE status = 0',
} as const

export const [DELIVERED, DEAD] = [1, 2] as const

/** The program's SQLite file, as SQL sees it: nothing of ours is asked. */
export class Books implements Disposable {
  readonly #db: Database.Database

  constructor(file: string) {
    this.#db = new Database(file, { readonly: true, fileMustExist: true })
  }

  pages(): Pages {
    return {
      facts: this.#rows(QUERIES.facts),
      deliveries: this.#rows(QUERIES.deliveries),
      calls: this.#rows(QUERIES.calls),
      sessions: this.#rows(QUERIES.sessions),
      turns: this.#rows(QUERIES.turns),
      openActions: this.#rows(QUERIES.openActions),
      webhookSecrets: this.#db.prepare<[], string>(QUERIES.webhookSecrets).pluck().all(),
      hinted: new Set(this.#db.prepare<[], string>(QUERIES.hinted).pluck().all()),
      cursor: this.count(QUERIES.cursor),
    }
  }

  /** Deliveries that are pending. */
  pending(): number {
    return this.count(QUERIES.pending)
  }

  count(sql: string): number {
    return Number(this.#db.prepare(sql).pluck().get() ?? 0)
  }

  /** What SQLite finds wrong with its own file; 'ok'. */
  check(): string {
    return String(this.#db.pragma('quick_check(1)', { simple: true }))
  }

  #rows<Row>(sql: string): Row[] {
    return this.#db.prepare<[], Row>(sql).all()
  }

  [Symbol.dispose](): void {
    this.#db.close()
  }
}
