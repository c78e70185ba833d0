import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { deserialize, serialize } from 'node:v8'
import type { Mode } from './run.ts'
import { hashSources } from './sources.ts'
import { newTally, type Tally } from './tally.ts'

/** A campaign so far. It is kept in a file, for one that takes longer than its process lives. */
export interface Journal {
  /** Of all that can make a difference to a seed. */
  readonly sources: string
  readonly mode: Mode
  readonly first: number
  /** Seeds before it are in the tally, and no others. */
  next: number
  /** Processor time, milliseconds. */
  cpu: number
  tally: Tally
}

/** A journal that cannot be gone on with. */
export class JournalError extends Error {
  override readonly name = 'JournalError'
}

const OWN = { sources: 'other sources', mode: 'another mode', first: 'another first seed' } as const

/**
 * The journal in `file`, or a new one that begins with `first`.
 *
 * @throws JournalError when it is of other sources, or of another beginning: its seeds say nothing about these.
 */
export function openJournal(file: string | null, mode: Mode, first: number): Journal {
  const fresh: Journal = { sources: hashSources(), mode, first, next: first, cpu: 0, tally: newTally() }
  if (file === null || !existsSync(file)) return fresh
  const kept = deserialize(readFileSync(file)) as Journal
  for (const [name, what] of Object.entries(OWN) as [keyof typeof OWN, string][]) {
    if (kept[name] !== fresh[name])
      throw new JournalError(`${file} is a journal of ${what}: ${kept[name]}, now ${fresh[name]}`)
  }
  return kept
}

/** Writes it anew beside the old one: a kill leaves one of both. */
export function saveJournal(file: string, journal: Journal): void {
  writeFileSync(`${file}.new`, serialize(journal))
  renameSync(`${file}.new`, file)
}
