import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { Store } from '../../src/core/store.ts'
import { frameFact } from '../support/fact.ts'
import { folder, openStore } from './database.ts'

const SIDES = ['', '-wal']

/** What is at a path: a hash of the bytes of the database and of its log. */
export function bytesOf(path: string): (string | null)[] {
  return SIDES.map((side) =>
    existsSync(path + side)
      ? createHash('sha256')
          .update(readFileSync(path + side))
          .digest('hex')
      : null,
  )
}

export function copyStore(from: string, to: string, sides: readonly string[] = SIDES): string {
  for (const side of sides) if (existsSync(from + side)) copyFileSync(from + side, to + side)
  return to
}

export async function commitFrames(store: Store, from: number, count: number): Promise<void> {
  for (let seq = from; seq < from + count; seq++)
    await store.log.commit({ facts: [frameFact(seq)], cursor: String(seq) })
}

/** Has SQLite write the log into the file. The next commit begins the log anew. */
export function checkpoint(path: string): void {
  const db = new Database(path)
  db.pragma('wal_checkpoint(FULL)')
  db.close()
}

/** A store as a process leaves it that is killed: its last commits are in the log alone. */
export async function killedStore(frames = 10): Promise<string> {
  const live = join(folder(), 'live.db')
  const { store } = await openStore({ path: live })
  await commitFrames(store, 1, frames)
  const path = copyStore(live, join(folder(), 'sidecar.db'))
  await store.close()
  if (statSync(`${path}-wal`).size === 0) throw new Error('its log is empty')
  return path
}

/** Facts of a store that no process has open, read without changing it. */
export function factsIn(path: string): number {
  const copy = copyStore(path, join(folder(), 'copy.db'))
  const db = new Database(copy)
  try {
    return Number(db.prepare('SELECT count(*) FROM facts').pluck().get())
  } finally {
    db.close()
  }
}
