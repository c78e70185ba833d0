import type { Clock } from '../../src/std/ports.ts'
import type { Agenda } from './agenda.ts'
import type { Disk } from './disk.ts'
import type { Life } from './life.ts'
import type { Passages } from './sites.ts'

export interface WallClock {
  /** What our wall clock is off the true time, milliseconds. */
  offset: number
}

/** The clock of one life: timers die with it. `soon` is for what is to be written, and the disk has its own pace. */
export function clockOf(life: Life, agenda: Agenda, wall: WallClock, sites: Passages, disk: Disk): Clock {
  const passing = (site: string, run: () => void) => () => {
    if (sites.crashes(site, 'before')) return
    run()
    if (life.alive) sites.crashes(site, 'after')
  }
  return {
    now: () => Math.floor(agenda.now + wall.offset),
    steady: () => life.startWall + (agenda.now - life.startedAt),
    after(ms, run) {
      if (!life.alive) return { cancel: () => undefined }
      life.timers++
      let waiting = true
      const over = (): void => {
        if (waiting) life.timers--
        waiting = false
      }
      const passed = passing('clock.after', run)
      const entry = agenda.in(
        // As Node's timers do.
        Math.max(1, Math.trunc(ms)),
        () => {
          over()
          passed()
        },
        life,
      )
      return {
        cancel() {
          entry.cancelled = true
          over()
        },
      }
    },
    soon(run) {
      if (life.alive) disk.write(passing('clock.soon', run))
    },
  }
}
