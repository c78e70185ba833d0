import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openSqliteStore } from '../../../src/sidecar/store/sqlite/store.ts'
import { systemClock } from '../../../src/system/clock.ts'
import { frameFact } from '../../support/fact.ts'
import { deafObserver, keepingLog } from '../../support/ports.ts'
import type { Measure } from '../measure.ts'
import { watchMemory } from '../usage.ts'
import { handlerAt, type Scenario } from '../scenario.ts'
import { Subject } from '../subject.ts'

const MEMORY = 'backlog, memory over an empty start'
const START = 'backlog, start beside an empty one'
const FACTS = 1_000_000
const SESSIONS = 10_000
/** Facts of one commit. */
const TOGETHER = 5000
/** Milliseconds of running, probes of the handler among them, in which the most memory is looked for. */
const WATCHED = 10_000
/** No program listens there. */
const UNREACHABLE = 'http://127.0.0.1:9'

const most = (name: string, unit: string, value: number): Measure => ({
  name,
  unit,
  digits: 1,
  judge: (ours) => ours,
  judged: `# ${unit}`,
  floor: { at: 'most', value },
})

/** An unreachable handler with a million pending facts: what they cost in memory, and at the start. */
export const backlog: Scenario = {
  measures: [most(MEMORY, 'MB', 20), most(START, 's', 2)],
  async open(bench) {
    const full = bench.folder()
    await fill(full, bench.scaled(FACTS))
    return {
      async ours() {
        const empty = await measure(bench.folder())
        const loaded = await measure(full)
        return { [MEMORY]: loaded.memory - empty.memory, [START]: loaded.start - empty.start }
      },
    }
  },
}

async function measure(folder: string): Promise<{ memory: number; start: number }> {
  const begun = performance.now()
  await using subject = await Subject.start(folder, {
    service: { base_url: UNREACHABLE, token: 'svc_pat_bench' },
    stream: { enabled: false },
    handlers: [handlerAt(UNREACHABLE)],
  })
  const start = (performance.now() - begun) / 1000
  const { most: memory } = await watchMemory(subject.pid, pause(WATCHED))
  await subject.stop()
  return { memory, start }
}

async function fill(folder: string, count: number): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const store = openSqliteStore({
    path: path.join(folder, 'store.db'),
    clock: systemClock(),
    log: keepingLog(),
    onCommit: deafObserver.commit,
  })
  await store.settings.registerHandlers([{ name: 'app', ordered: true, events: ['*'] }])
  for (let seq = 1; seq <= count; seq += TOGETHER) {
    const facts = Array.from({ length: Math.min(TOGETHER, count - seq + 1) }, (_, index) =>
      frameFact(seq + index, `ses_${(seq + index) % SESSIONS}`, { at: Date.now() }),
    )
    await store.log.commit({ facts })
  }
  await store.close()
}
