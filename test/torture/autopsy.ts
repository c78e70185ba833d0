import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import path from 'node:path'
import type { LedgerView } from '../../src/emulator/index.ts'
import type { Posting } from '../checker/history.ts'
import { Books, type Pages } from './books.ts'
import { postings } from './oracle/postings.ts'
import type { World } from './world.ts'

/** Highest cursor that was found in a world's database. */
const cursors = new WeakMap<Examined, number>()

type Examined = Pick<World, 'gaps' | 'tally' | 'violated'>

/** Checks the disk of a killed program: everything that it sent must be written there. */
export async function examine(world: World): Promise<void> {
  if (!existsSync(world.store)) return
  const ledger = await world.service.ledger().catch(() => null)
  const folder = mkdtempSync(path.join(world.folder, 'autopsy-'))
  // On a copy: to look into a file that was left open is to recover it, which is the next life's to do.
  const copy = path.join(folder, 'sidecar.db')
  for (const side of ['', '-wal']) {
    if (existsSync(world.store + side)) copyFileSync(world.store + side, copy + side)
  }
  try {
    using books = new Books(copy)
    if (books.count("SELECT count(*) FROM sqlite_schema WHERE name = 'facts'") === 0) return
    const verdict = books.check()
    if (verdict !== 'ok') world.violated('I1', `the database is damaged after a kill: ${verdict}`)
    examinePages(world, books.pages(), { ledger, posted: postings(world) })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** What is stored, against what the service had said and was sent before it was read. */
export function examinePages(
  world: Examined,
  pages: Pages,
  { ledger, posted }: { ledger: LedgerView | null; posted: readonly Posting[] },
): void {
  checkpoint(world, pages, ledger)
  postedResults(world, pages, posted)
  if (ledger !== null) hints(world, pages, ledger)
  world.tally.add('databases examined after a kill')
}

/** I2. */
function checkpoint(world: Examined, { cursor, facts }: Pages, ledger: LedgerView | null): void {
  const before = cursors.get(world) ?? 0
  if (cursor < before) world.violated('I2', `the checkpoint went back from ${before} to ${cursor}`)
  cursors.set(world, cursor)
  if (ledger === null || world.gaps) return
  const stored = new Set(facts.map(({ seq }) => Number(seq)))
  const missing = ledger.events.find(({ seq }) => seq <= cursor && !stored.has(seq))
  if (missing !== undefined)
    world.violated('I2', `the checkpoint is ${cursor} and seq ${missing.seq} is not stored`)
}

/** I4: what was posted is on the disk. */
function postedResults(world: Examined, pages: Pages, posted: readonly Posting[]): void {
  const calls = new Map(pages.calls.map((row) => [row.call_id, row]))
  for (const { call_id: callId, kind, text } of posted) {
    const row = calls.get(callId)
    const replaced = kind === 'output' && row?.result_kind === 'error'
    if (row === undefined || row.result_kind === null)
      world.violated('I4', `${callId} was answered, and no result is stored`)
    else if (!replaced && (row.result_kind !== kind || row.result_text !== text))
      world.violated('I4', `${callId} was answered with "${text}", stored is "${row.result_text}"`)
  }
}

/** I6: the session of a webhook has a hint, or was read since. */
function hints(world: Examined, { hinted, sessions }: Pages, ledger: LedgerView): void {
  // The wish for a sweep is one for every session.
  if (hinted.has('')) return
  const known = new Map(sessions.map((row) => [row.id, row]))
  const alive = new Set(ledger.sessions.filter(({ deleted_at }) => deleted_at === null).map(({ id }) => id))
  for (const { session_id: session, attempts, event } of ledger.deliveries) {
    if (!alive.has(session) || hinted.has(session)) continue
    const taken = attempts.findLast(({ status }) => status !== null && status >= 200 && status < 300)
    if (taken === undefined) continue
    world.tally.add('answered webhooks examined')
    const readAt = known.get(session)?.read_at ?? 0
    if (readAt < taken.at)
      world.violated(
        'I6',
        `${event} of ${session} was answered 2xx at ${taken.at}; it was last read at ${readAt}, and no hint is stored`,
      )
  }
}
