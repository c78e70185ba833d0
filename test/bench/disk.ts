import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { now } from './clock.ts'
import { median } from './statistics.ts'

/** A page of SQLite's, bytes. */
const PAGE = 4096
const SYNCS = 150
/** Milliseconds between two: the pace of frames in `latency`. A disk that rested answers later than one that is kept busy. */
const PACE = 5

/** p50 of one fdatasync of a page that was just appended, milliseconds. */
export interface Disk {
  /** One every 5 ms. What the floors are measured with. */
  paced: number
  /** One after the other. */
  busy: number
}

/** Measures the disk that `folder` is on. */
export async function measureDisk(folder: string): Promise<Disk> {
  const file = path.join(folder, 'fdatasync')
  const fd = openSync(file, 'w')
  const page = Buffer.alloc(PAGE, 1)
  const sync = (): number => {
    writeSync(fd, page)
    const started = now()
    fdatasyncSync(fd)
    return now() - started
  }
  try {
    const busy = Array.from({ length: SYNCS }, sync)
    const paced: number[] = []
    while (paced.length < SYNCS) {
      await pause(PACE)
      paced.push(sync())
    }
    return { paced: median(paced), busy: median(busy) }
  } finally {
    closeSync(fd)
    rmSync(file)
  }
}
