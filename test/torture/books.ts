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

export const [PENDING, DELIVERED, DEAD] = [0, 1, 2] as const

/** The program's database, as SQL sees it: nothing of ours is asked. */
export class Books implements Disposable {
  readonly #db: Database.Database

  constructor(file: string) {
    this.#db = new Database(file, { readonly: true, fileMustExist: true })
  }

  facts(): FactRow[] {
    return this.#db
      .prepare<[], FactRow>(
        'SELECT pos, id, type, session_id, turn_id, family, seq, body FROM facts ORDER BY pos',
      )
      .all()
  }

  deliveries(): DeliveryRow[] {
    return this.#db
      .prepare<[], DeliveryRow>(
        `SELECT f.id AS fact_id, f.type, h.name AS handler, f.session_id, d.status, d.attempts, d.log
         FROM deliveries d JOIN facts f ON f.pos = d.fact_pos JOIN handlers h ON h.number = d.handler`,
      )
      .all()
  }

  calls(): CallRow[] {
    return this.#db.prepare<[], CallRow>('SELECT * FROM calls').all()
  }

  sessions(): SessionRow[] {
    return this.#db.prepare<[], SessionRow>('SELECT id, status, read_at, deleted_at FROM sessions').all()
  }

  turns(): TurnRow[] {
    return this.#db.prepare<[], TurnRow>('SELECT id, session_id, raw FROM turns').all()
  }

  openActions(): { call_id: string; session_id: string }[] {
    return this.#db
      .prepare<[], { call_id: string; session_id: string }>(
        `SELECT a.call_id, a.session_id FROM actions a LEFT JOIN sessions s ON s.id = a.session_id
         WHERE a.resolved_at IS NULL AND s.deleted_at IS NULL`,
      )
      .all()
  }

  hinted(): Set<string> {
    return new Set(this.#db.prepare<[], string>('SELECT session_id FROM hints').pluck().all())
  }

  /** Of the stream; 0 before the first frame. */
  cursor(): number {
    const value = this.#db.prepare("SELECT value FROM checkpoints WHERE name = 'stream'").pluck().get()
    return Number(value ?? 0)
  }

  /** Persisted frames that are stored, by seq. */
  seqs(): Set<number> {
    return new Set(
      this.#db.prepare<[], string>('SELECT seq FROM facts WHERE seq IS NOT NULL').pluck().all().map(Number),
    )
  }

  /** Secrets of the webhook subscriptions: these alone are kept here, and nowhere else. */
  webhookSecrets(): string[] {
    return this.#db.prepare<[], string>('SELECT secret FROM subscriptions').pluck().all()
  }

  count(sql: string): number {
    return this.#db.prepare<[], number>(sql).pluck().get() ?? 0
  }

  /** What SQLite finds wrong with its own file; 'ok'. */
  check(): string {
    return String(this.#db.pragma('quick_check(1)', { simple: true }))
  }

  [Symbol.dispose](): void {
    this.#db.close()
  }
}
