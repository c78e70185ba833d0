import { readFile, writeFile } from 'node:fs/promises'

/** What a process spent between two readings. */
export interface Usage {
  /** Bytes by which its resident memory rose at the highest. */
  memory: number
  /** Milliseconds of processor time of its main thread, which is the one with the event loop. */
  loop: number
}

/** Milliseconds of a tick of /proc: 100 a second on every Linux. */
const TICK = 10

/** What the process `pid` spends while `act` runs, by what the kernel counted. Linux alone. */
export async function usageOf(pid: number, act: () => Promise<unknown>): Promise<Usage> {
  const peak = await readPeak(pid)
  const loop = await loopOf(pid)
  await act()
  return { memory: await peak(), loop: (await loopOf(pid)) - loop }
}

/** Starts to count the peak of resident memory anew; @returns what says by how many bytes it rose; null: no Linux. */
export async function peakOf(pid: number): Promise<(() => Promise<number>) | null> {
  return process.platform === 'linux' ? await readPeak(pid) : null
}

async function readPeak(pid: number): Promise<() => Promise<number>> {
  await writeFile(`/proc/${pid}/clear_refs`, '5')
  const memory = await statusOf(pid, 'VmRSS')
  return async () => (await statusOf(pid, 'VmHWM')) - memory
}

/** Bytes. */
async function statusOf(pid: number, field: 'VmRSS' | 'VmHWM'): Promise<number> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8')
  const found = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1]
  if (found === undefined) throw new Error(`/proc/${pid}/status has no ${field}`)
  return Number(found) * 1024
}

async function loopOf(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/task/${pid}/stat`, 'utf8')
  // The name, in parentheses, may have spaces; user and system time are the 14th and 15th field.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK
}
