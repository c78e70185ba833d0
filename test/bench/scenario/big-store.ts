import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openSqliteStore } from '../../../src/store/sqlite/store.ts'
import { EventReader } from '../../admin/event-reader.ts'
import { clock, frameFact, memoryLog, readingOf, sessionRaw } from '../../admin/seed.ts'
import { now } from '../clock.ts'
import type { Figures } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { median } from '../statistics.ts'
import { Subject } from '../subject.ts'

const SCRAPE = 'scrape'
const REPLAY = 'replay of a session'
const SESSIONS = 100_000
const FACTS = 1_000_000
/** Frames of the session that is replayed; they lie all over the log. */
const REPLAYED = 20
const TOGETHER = 1000
const SCRAPES = 11
/** A little longer than a reading of the store is shared by scrapes, milliseconds: each is the first of its second. */
const APART = 1050

/** What people ask of a store that has become big: neither answer may take longer for it. */
export const bigStore: Scenario = {
  measures: [
    {
      name: SCRAPE,
      unit: 'ms p50',
      digits: 1,
      judge: (ours) => ours,
      judged: '# ms',
      floor: { at: 'most', value: 10 },
    },
    {
      name: REPLAY,
      unit: 'ms',
      digits: 1,
      judge: (ours) => ours,
      judged: '# ms',
      floor: { at: 'most', value: 100 },
    },
  ],
  async open(bench) {
    const folder = bench.folder()
    await fill(path.join(folder, 'store.db'), bench.scaled(SESSIONS), bench.scaled(FACTS))
    return {
      async ours(): Promise<Figures> {
        // Nobody listens there: nothing changes in the store, and the relay serves its log all the same.
        await using subject = await Subject.start(folder, {
          service: { base_url: 'http://127.0.0.1:9', token: 'svc_pat_bench' },
          polling: { enabled: false },
        })
        const figures = { [SCRAPE]: await scrapes(subject), [REPLAY]: await replay(subject) }
        await subject.stop()
        return figures
      },
    }
  },
}

async function fill(file: string, sessions: number, facts: number): Promise<void> {
  const store = openSqliteStore({ path: file, clock, log: memoryLog() })
  await store.registerHandlers([])
  for (let from = 0; from < sessions; from += TOGETHER) {
    const readings = Array.from({ length: Math.min(TOGETHER, sessions - from) }, (_, index) =>
      readingOf(sessionRaw(`s-${from + index}`)),
    )
    await store.commit({ readings })
  }
  const apart = Math.max(1, Math.floor(facts / REPLAYED))
  for (let from = 0; from < facts; from += TOGETHER) {
    const frames = Array.from({ length: Math.min(TOGETHER, facts - from) }, (_, index) => {
      const place = from + index
      return frameFact(String(place + 1), place % apart === 0 ? 's-0' : `s-${(place % (sessions - 1)) + 1}`)
    })
    await store.commit({ facts: frames })
  }
  await store.close()
}

async function scrapes(subject: Subject): Promise<number> {
  const times: number[] = []
  while (times.length < SCRAPES) {
    await pause(APART)
    const begun = now()
    await subject.metric('session_slots_used')
    times.push(now() - begun)
  }
  return median(times)
}

async function replay(subject: Subject): Promise<number> {
  const begun = now()
  await using reader = await EventReader.open(`${subject.adminUrl}/v1/sessions/s-0/events?last_event_id=0`)
  await reader.has(REPLAYED)
  return now() - begun
}
