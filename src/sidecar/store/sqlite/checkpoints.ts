import type { Sqlite } from './open.ts'

/** Named places up to which something is done: the stream's cursor, the sweep's, the pruning's. */
export class Checkpoints {
  readonly #get
  readonly #set
  readonly #drop

  constructor(db: Sqlite) {
    this.#get = db.prepare<[string], string | null>('SELECT value FROM checkpoints WHERE name = ?').pluck()
    this.#drop = db.prepare<[string]>('DELETE FROM checkpoints WHERE name = ?')
    this.#set = db.prepare<[string, string | null]>(
      'INSERT INTO checkpoints (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
    )
  }

  get(name: string): string | null {
    return this.#get.get(name) ?? null
  }

  drop(name: string): void {
    this.#drop.run(name)
  }

  set(name: string, value: string | null): void {
    this.#set.run(name, value)
  }
}
