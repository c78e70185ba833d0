import { openSqliteStore } from '../../src/sidecar/store/sqlite/store.ts'
import { clock, frameFact, memoryLog, readingOf, sessionRaw } from '../admin/seed.ts'

/** Rows that are committed together. */
const TOGETHER = 1000

/** Makes a store in `file` of so many sessions, `s-0` on, and `facts` of which `s-0` has `own`, all over the log. */
export async function fillStore(file: string, sessions: number, facts: number, own: number): Promise<void> {
  const store = openSqliteStore({ path: file, clock, log: memoryLog() })
  await store.settings.registerHandlers([])
  for (let from = 0; from < sessions; from += TOGETHER) {
    const readings = Array.from({ length: Math.min(TOGETHER, sessions - from) }, (_, index) =>
      readingOf(sessionRaw(`s-${from + index}`)),
    )
    await store.log.commit({ readings })
  }
  const apart = Math.max(1, Math.floor(facts / own))
  for (let from = 0; from < facts; from += TOGETHER) {
    const frames = Array.from({ length: Math.min(TOGETHER, facts - from) }, (_, index) => {
      const place = from + index
      return frameFact(String(place + 1), place % apart === 0 ? 's-0' : `s-${(place % (sessions - 1)) + 1}`)
    })
    await store.log.commit({ facts: frames })
  }
  await store.close()
}
