import type { SubscriptionRecord } from '../../../core/store.ts'
import type { Sqlite } from './open.ts'

interface SubscriptionRow {
  id: string
  url: string
  secret: string
  created_at: number
  retired_at: number | null
}

/** Our subscriptions to the service's webhooks, with the secrets that deliveries are verified with. */
export class Subscriptions {
  readonly #list
  readonly #save
  readonly #forget

  constructor(db: Sqlite) {
    this.#list = db.prepare<[], SubscriptionRow>('SELECT * FROM subscriptions ORDER BY created_at DESC')
    this.#save = db.prepare<[string, string, string, number, number | null]>(
      `INSERT INTO subscriptions (id, url, secret, created_at, retired_at) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET retired_at = excluded.retired_at`,
    )
    this.#forget = db.prepare<[string]>('DELETE FROM subscriptions WHERE id = ?')
  }

  /** The newest first. */
  list(): SubscriptionRecord[] {
    return this.#list.all().map((row) => ({
      id: row.id,
      url: row.url,
      secret: row.secret,
      createdAt: row.created_at,
      retiredAt: row.retired_at,
    }))
  }

  save(record: SubscriptionRecord): void {
    this.#save.run(record.id, record.url, record.secret, record.createdAt, record.retiredAt)
  }

  forget(id: string): void {
    this.#forget.run(id)
  }
}
