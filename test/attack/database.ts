import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { OperatorError } from '../../src/std/errors.ts'
import type { Fact } from '../../src/core/fact.ts'
import type { Random } from '../../src/std/ports.ts'
import { StoreError } from '../../src/core/store-error.ts'
import { inspectStore } from '../../src/sidecar/store/sqlite/inspect.ts'
import { openSqliteStore } from '../../src/sidecar/store/sqlite/store.ts'
import { VirtualClock } from '../support/clock.ts'
import { frameFact, turnFact } from '../support/fact.ts'
import { keepingLog } from '../support/ports.ts'
import { inFolder } from './folder.ts'
import { pick, whole } from './mutate.ts'
import { Tally } from './tally.ts'

const PAGE = 4096
const FACTS = Array.from({ length: 60 }, (_, index) =>
  index % 3 === 0
    ? turnFact('turn.completed', `turn_${index}`, `ses_${index % 5}`)
    : frameFact(index, `ses_${index % 5}`, { body: `{"text":"${'é☂ '.repeat(index)}"}` }),
)
const WRITTEN = new Set(FACTS.map(textOf))

/** Stores with bytes changed in any page: refused, reported, or every fact is as it was written. */
export function attackDatabase(count: number, random: Random): Promise<Tally> {
  return inFolder(async (folder) => {
    const sound = await fill(join(folder, 'sound.db'))
    const file = join(folder, 'damaged.db')
    const tally = new Tally()
    for (let index = 0; index < count; index++) {
      writeFileSync(file, damage(sound, random))
      tally.note(await look(file, join(folder, 'mine.db')))
    }
    return tally
  })
}

async function fill(path: string): Promise<Buffer> {
  const store = openSqliteStore({ path, clock: new VirtualClock(), log: keepingLog() })
  await store.settings.registerHandlers([{ name: 'app', ordered: true, events: ['*'] }])
  await store.log.commit({ facts: FACTS, cursor: '60' })
  await store.close()
  return readFileSync(path)
}

const DAMAGES: readonly ((bytes: Buffer, random: Random) => Buffer)[] = [
  (bytes, random) => {
    const at = whole(random, bytes.length)
    bytes[at] = (bytes[at] ?? 0) ^ (1 << whole(random, 8))
    return bytes
  },
  (bytes, random) => bytes.fill(whole(random, 256), ...stretch(bytes, random, 512)),
  (bytes, random) => {
    const [from, to] = stretch(bytes, random, 64)
    bytes.copy(bytes, whole(random, Math.max(1, bytes.length - 64)), from, to)
    return bytes
  },
  (bytes, random) => {
    const pages = Math.floor(bytes.length / PAGE)
    if (pages < 2) return bytes
    bytes.copy(bytes, whole(random, pages) * PAGE, PAGE, 2 * PAGE)
    return bytes
  },
  (bytes, random) => bytes.subarray(0, whole(random, bytes.length)),
]

function damage(sound: Buffer, random: Random): Buffer {
  let bytes = Buffer.from(sound)
  for (let times = 1 + whole(random, 3); times > 0; times--)
    bytes = Buffer.from(pick(random, DAMAGES)(bytes, random))
  return bytes.length < 64 ? Buffer.from(sound.subarray(0, 64)) : bytes
}

function stretch(bytes: Buffer, random: Random, most: number): [number, number] {
  const from = whole(random, bytes.length)
  return [from, Math.min(bytes.length, from + 1 + whole(random, most))]
}

/** @throws when a handler would get anything but what was written. */
async function look(file: string, mine: string): Promise<string> {
  let problems: readonly string[]
  try {
    ;({ problems } = inspectStore(file))
  } catch (error) {
    if (error instanceof OperatorError) return 'refused'
    throw error
  }
  for (const suffix of ['', '-wal', '-shm', '-lock']) rmSync(mine + suffix, { force: true })
  copyFileSync(file, mine)
  let facts: Fact[]
  try {
    facts = await read(mine)
  } catch (error) {
    if (error instanceof StoreError) return 'broken in use, reported'
    if (!(error instanceof OperatorError)) throw error
    if (problems.length === 0)
      throw new Error('the start refuses what the check finds sound', { cause: error })
    return 'refused'
  }
  const wrong = facts.find((fact) => !WRITTEN.has(textOf(fact)))
  if (wrong !== undefined) throw new Error(`${textOf(wrong)} was never written`)
  return problems.length > 0 ? 'reported' : 'harmless'
}

/** What a handler would get. */
async function read(path: string): Promise<Fact[]> {
  const store = openSqliteStore({ path, clock: new VirtualClock(), log: keepingLog() })
  try {
    await store.settings.registerHandlers([{ name: 'app', ordered: true, events: ['*'] }])
    const facts: Fact[] = []
    for (const lane of await store.lanes.claim({ handler: 'app', lanes: 10 }))
      for (const { fact } of (await store.lanes.read(lane, 0, FACTS.length, 1e9)).deliveries) facts.push(fact)
    return facts
  } finally {
    await store.close().catch(() => undefined)
  }
}

function textOf({ id, type, sessionId, body }: Fact): string {
  return JSON.stringify([id, type, sessionId, body])
}
