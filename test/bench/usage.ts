import { readFileSync } from 'node:fs'

/** Milliseconds between two looks at a process's memory. */
const LOOK = 200

/** Megabytes (10^6 bytes) that a process has resident: now, or the most it ever had. */
export function residentMemory(pid: number, which: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const kibibytes = new RegExp(`^${which}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]
  if (kibibytes === undefined) throw new Error(`process ${pid} shows no ${which}`)
  return (Number(kibibytes) * 1024) / 1e6
}

/** The most that a process has resident while `work` goes on. */
export async function watchMemory<T>(pid: number, work: Promise<T>): Promise<{ result: T; most: number }> {
  let most = 0
  const look = (): void => {
    most = Math.max(most, residentMemory(pid, 'VmRSS'))
  }
  const timer = setInterval(look, LOOK)
  try {
    const result = await work
    look()
    return { result, most }
  } finally {
    clearInterval(timer)
  }
}

/** Ticks of the kernel's clock in a second, as processes see it (USER_HZ). */
const TICKS = 100
/** Fields of /proc/PID/stat after the command, which stands in parentheses and may hold spaces: utime and stime. */
const UTIME = 11
const STIME = 12

/** Seconds that all threads of a process have had a processor, as `process.cpuUsage()` in it would say. */
export function processorTime(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[UTIME]) + Number(fields[STIME])) / TICKS
}
