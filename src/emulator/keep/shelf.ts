import type { Static, TSchema } from 'typebox'
import { faultsOf } from '../check.ts'
import { damaged, type Change, type DataFile } from './file.ts'

/** How the entries of one kind are written and read. */
interface Codec<Entry extends object, S extends TSchema> {
  readonly kind: string
  readonly schema: S
  write(entry: Entry): Static<S>
  /** Makes the entry from a record. */
  read(record: Static<S>): Entry
  /** True for an entry that never changes again. */
  final?(entry: Entry): boolean
}

interface ShelfCodec<Entry extends object, S extends TSchema> extends Codec<Entry, S> {
  /** All entries, in order. */
  entries(): Iterable<Entry>
  idOf(entry: Entry): string
  /** Restores an entry so that `entries` finds it. */
  restore(entry: Entry): void
}

interface JournalCodec<Entry extends object, S extends TSchema> extends Codec<Entry, S> {
  /** The place of the oldest remaining entry. */
  first(): number
  /** The entries from a place on. */
  from(place: number): readonly Entry[]
  /** Restores the entries; the first of `entries` has the place `first`. */
  restore(entries: Entry[], first: number): void
}

/** Keeps the records of one kind up to date. */
export interface Kept {
  /**
   * @throws {DataFileError} when a record is invalid.
   */
  load(file: DataFile): void
  /** The writes that make the file equal to memory. */
  changes(): Change[]
}

/** For entries that are added, changed and removed in any order. */
export function shelf<Entry extends object, S extends TSchema>(codec: ShelfCodec<Entry, S>): Kept {
  const written = new Map<string, { place: number; json: string }>()
  const settled = new WeakSet<Entry>()
  let next = 0

  function note(entry: Entry, place: number, json: string): void {
    const final = codec.final?.(entry) === true
    if (final) settled.add(entry)
    written.set(codec.idOf(entry), { place, json: final ? '' : json })
  }

  return {
    load: (file) => {
      for (const { place, json } of file.rows(codec.kind)) {
        const entry = codec.read(parse(file, codec, place, json))
        codec.restore(entry)
        note(entry, place, json)
        next = place + 1
      }
    },
    changes: () => {
      const changes: Change[] = []
      const present = new Set<string>()
      for (const entry of codec.entries()) {
        const id = codec.idOf(entry)
        present.add(id)
        if (settled.has(entry)) continue
        const before = written.get(id)
        const json = JSON.stringify(codec.write(entry))
        const place = before?.place ?? next++
        if (before?.json !== json) changes.push({ kind: codec.kind, place, json })
        note(entry, place, json)
      }
      if (written.size === present.size) return changes
      for (const [id, { place }] of written) {
        if (present.has(id)) continue
        changes.push({ kind: codec.kind, place, json: null })
        written.delete(id)
      }
      return changes
    },
  }
}

/** For entries that are only appended, removed from the front, and changed until they are final. */
export function journal<Entry extends object, S extends TSchema>(codec: JournalCodec<Entry, S>): Kept {
  const { kind } = codec
  const open = new Map<number, { entry: Entry; json: string }>()
  let next = 0
  let first = 0

  function note(entry: Entry, place: number, json: string): void {
    if (codec.final?.(entry) === false) open.set(place, { entry, json })
    else open.delete(place)
  }

  return {
    load: (file) => {
      const rows = file.rows(kind)
      first = rows[0]?.place ?? codec.first()
      const entries = rows.map(({ place, json }) => {
        const entry = codec.read(parse(file, codec, place, json))
        note(entry, place, json)
        return entry
      })
      next = first + rows.length
      codec.restore(entries, first)
    },
    changes: () => {
      const changes: Change[] = []
      if (codec.first() > first) {
        first = codec.first()
        changes.push({ kind, below: first })
        for (const place of open.keys()) if (place < first) open.delete(place)
      }
      for (const [place, { entry, json: before }] of open) {
        const json = JSON.stringify(codec.write(entry))
        if (json !== before) changes.push({ kind, place, json })
        note(entry, place, json)
      }
      next = Math.max(next, first)
      for (const entry of codec.from(next)) {
        const json = JSON.stringify(codec.write(entry))
        changes.push({ kind, place: next, json })
        note(entry, next, json)
        next += 1
      }
      return changes
    },
  }
}

function parse<S extends TSchema>(
  file: DataFile,
  { kind, schema }: { kind: string; schema: S },
  place: number,
  json: string,
): Static<S> {
  let record: unknown
  try {
    record = JSON.parse(json)
  } catch {
    throw damaged(file.path, `the ${kind} ${place} is not JSON`)
  }
  const [fault] = faultsOf(schema, record)
  if (fault !== undefined) throw damaged(file.path, `the ${kind} ${place}: ${fault}`)
  return record as Static<S>
}
