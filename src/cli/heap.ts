import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/** V8 collects its young generation twice within this time: the process is under load. Milliseconds. */
const BUSY = 100
/** The young generation, both its halves together, does not grow beyond this. Bytes. */
const YOUNG = 16 * 1024 * 1024
/** By how much the old generation may grow before it is collected again. Percent. */
const GROWTH = { calm: 50, busy: 150 }

/**
 * A sidecar shares its machine with the app and holds little data, so this limits the growth of
 * V8's heap. Called before the engine is loaded, while the young generation is still small. It
 * costs a few percent of the speed of a burst and saves a third of the memory. Only the program
 * does this, never the library.
 */
export function keepHeapSmall(): void {
  growOld(GROWTH.calm)
  growYoung(false)
  // The young generation is so small that waking threads for its collection takes longer than the collection.
  setFlagsFromString('--no-parallel-scavenge')
}

/**
 * A burst of 40,000 facts collects a young generation of 6 MiB two hundred times, and one of 16 MiB seventy times, in half
 * the time. So it may grow while collections follow each other. The old generation, of 20 MiB, is then collected a third as
 * often. Called after the start, which fills the heap as well.
 */
export function growUnderLoad(): void {
  let last = 0
  let grows = false
  let growth = GROWTH.calm
  new PerformanceObserver((list) => {
    let busy = false
    for (const { startTime } of list.getEntries()) {
      busy = startTime - last < BUSY
      last = startTime
    }
    const wanted = busy ? GROWTH.busy : GROWTH.calm
    if (wanted !== growth) growOld((growth = wanted))
    const mayGrow = busy && youngBytes() < YOUNG
    if (mayGrow !== grows) growYoung((grows = mayGrow))
  }).observe({ entryTypes: ['gc'] })
}

function growYoung(grows: boolean): void {
  setFlagsFromString(`--semi-space-growth-factor=${grows ? 2 : 1}`)
}

function growOld(percent: number): void {
  setFlagsFromString(`--heap-growing-percent=${percent}`)
}

function youngBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0
}
