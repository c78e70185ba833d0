import { copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, it } from 'vitest'
import { OperatorError } from '../../src/std/errors.ts'
import type { Fact } from '../../src/core/fact.ts'
import { inspectStore } from '../../src/sidecar/store/sqlite/inspect.ts'
import { openSqliteStore } from '../../src/sidecar/store/sqlite/store.ts'
import { VirtualClock } from '../support/clock.ts'
import { FULL } from '../support/full.ts'
import { frameFact } from '../support/fact.ts'
import { keepingLog } from '../support/ports.ts'
import { everything, folder, openStore } from './database.ts'

const PAGE = 4096
const COUNT = 120

/** A closed store of some pages, its log folded in. */
async function filled(): Promise<string> {
  const path = join(folder(), 'sidecar.db')
  const { store } = await openStore({ path })
  await store.log.commit({
    facts: Array.from({ length: COUNT }, (_, seq) => frameFact(seq + 1)),
    cursor: String(COUNT),
  })
  await store.close()
  return path
}

it('finds no fault in a sound store, and counts its rows, also while it is in use', async () => {
  const path = await filled()
  const { store } = await openStore({ path })
  await store.log.commit({ facts: [frameFact(COUNT + 1)], cursor: String(COUNT + 1) })
  const before = readFileSync(path)
  expect(inspectStore(path)).toMatchObject({
    facts: COUNT + 1,
    pending: COUNT + 1,
    dead: 0,
    openCalls: 0,
    cursor: String(COUNT + 1),
    problems: [],
  })
  expect(readFileSync(path)).toEqual(before)
})

it('names each fact that is not what was written, and those without a delivery', async () => {
  const path = await filled()
  const db = new Database(path)
  db.prepare("UPDATE facts SET body = replace(body, '{', '{ ') WHERE pos IN (3, 7)").run()
  db.prepare('DELETE FROM facts WHERE pos = 9').run()
  db.prepare('UPDATE lanes SET pending = pending + 1').run()
  db.close()
  const { problems } = inspectStore(path)
  expect(problems).toHaveLength(4)
  expect(problems.join('\n')).toMatch(
    /position 3\).*\n.*position 7\).*\n1 deliveries have no fact\n1 lanes have a wrong number/,
  )
})

/** Of a page: its head, its cells, its end. */
const PLACES = FULL ? [1, 9, 100, 1203, 2500, 4090] : [9, 2500]

// [fault process-7]
it('one byte flipped in any page: it is refused, or reported, or every fact is as it was written', async () => {
  const path = await filled()
  const whole = readFileSync(path)
  const copy = join(folder(), 'copy.db')
  const outcomes = { refused: 0, problems: 0, harmless: 0 }
  for (let page = 0; page < whole.length / PAGE; page++) {
    for (const place of PLACES) {
      const bytes = Buffer.from(whole)
      const at = page * PAGE + place
      bytes[at] = (bytes[at] ?? 0) ^ 0x41
      writeFileSync(copy, bytes)
      outcomes[await look(copy)]++
    }
  }
  expect(outcomes.refused).toBeGreaterThan(FULL ? 50 : 16)
  expect(outcomes.problems).toBeGreaterThan(FULL ? 10 : 2)
})

/** Opens a damaged copy as the program does. @throws when it would deliver anything but what was written. */
async function look(copy: string): Promise<'refused' | 'problems' | 'harmless'> {
  let problems: string[]
  try {
    ;({ problems } = inspectStore(copy))
  } catch (error) {
    if (error instanceof OperatorError) return 'refused'
    throw error
  }
  let delivered: string[]
  try {
    delivered = await read(copy)
  } catch {
    // A structure that breaks while it is used is an error, never a wrong fact.
    return 'refused'
  }
  const wrong = delivered.find((text) => !WRITTEN.has(text))
  if (wrong !== undefined) throw new Error(`${wrong} was never written`)
  return problems.length > 0 ? 'problems' : 'harmless'
}

const WRITTEN = new Set(Array.from({ length: COUNT }, (_, seq) => textOf(frameFact(seq + 1))))

function textOf({ id, type, sessionId, body }: Fact): string {
  return JSON.stringify([id, type, sessionId, body])
}

/** What a handler would get. */
async function read(copy: string): Promise<string[]> {
  const path = join(folder(), 'mine.db')
  copyFileSync(copy, path)
  const store = openSqliteStore({ path, clock: new VirtualClock(), log: keepingLog() })
  try {
    await store.settings.registerHandlers([everything('app')])
    const found: string[] = []
    for (const lane of await store.lanes.claim({ handler: 'app', lanes: 10 })) {
      for (const { fact } of (await store.lanes.read(lane, 0, COUNT, 1e9)).deliveries)
        found.push(textOf(fact))
    }
    return found
  } finally {
    await store.close().catch(() => undefined)
  }
}

it.each([
  ['a file that is not there', () => join(folder(), 'none.db'), 'does not exist'],
  [
    'the database of another program',
    () => {
      const path = join(folder(), 'theirs.db')
      const db = new Database(path)
      db.exec('CREATE TABLE recipes (name TEXT)')
      db.close()
      return path
    },
    'another program',
  ],
  [
    'a text',
    () => {
      const path = join(folder(), 'notes.txt')
      writeFileSync(path, 'Milk, eggs, flour. '.repeat(500))
      return path
    },
    'cannot be read',
  ],
])('refuses %s, and says what it is', (_, make, says) => {
  const path = make()
  const before = statSync(path, { throwIfNoEntry: false })?.mtimeMs
  expect(() => inspectStore(path)).toThrow(says)
  expect(statSync(path, { throwIfNoEntry: false })?.mtimeMs).toBe(before)
})

// An operator who followed the message deleted a sound store.
it('reports that the content of a store that cannot be opened is unknown', async () => {
  const path = join(folder(), 'sidecar.db')
  const { store } = await openStore({ path })
  await store.close()
  // A folder at the path of its log: SQLite cannot open the store, for any user.
  mkdirSync(`${path}-wal`)
  mkdirSync(`${path}-shm`)
  expect(() => inspectStore(path)).toThrow(
    'cannot be opened (unable to open database file), so its content was not checked',
  )
})
