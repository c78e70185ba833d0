import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { EventReader } from '../../admin/event-reader.ts'
import { now } from '../clock.ts'
import { fillStore } from '../fill.ts'
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
    const file = path.join(folder, 'store.db')
    await fillStore(file, bench.scaled(SESSIONS), bench.scaled(FACTS), REPLAYED)
    return {
      async ours(): Promise<Figures> {
        // No program listens there: nothing changes in the store, and the relay serves its log all
        // the same.
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
