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
