import type { Life } from '../sidecar.ts'

/** A process, as the database names it. */
export interface Row {
  /** Of the operating system; null: it does not say. */
  pid: number | null
  /** By the wall clock of the machine, milliseconds. */
  startedAt: number
}

/** `process`: machine/pid/start, or null. */
export function pidOf(process: string | null): number | null {
  return process === null ? null : Number(process.split('/')[1])
}

/** The system gives a number of a process again; a life has its own time. */
export function isRowOf({ pid, startedAt }: Row, life: Pick<Life, 'pid' | 'from' | 'until'>): boolean {
  return (pid ?? life.pid) === life.pid && startedAt >= life.from && startedAt <= (life.until ?? Infinity)
}
