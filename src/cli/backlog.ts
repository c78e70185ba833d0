import { setTimeout as sleep } from 'node:timers/promises'
import { numberOf } from '../std/json.ts'
import type { AdminClient } from './admin-client.ts'
import { field } from './reply.ts'
import { onSignals } from './signals.ts'
import type { Terminal } from './terminal.ts'
import { count } from './text.ts'

/** Milliseconds between requests. */
const INTERVAL = 250
/** The limit of the list: handlers are few, so one page holds them all. */
const ALL = 1000

/**
 * Waits until a handler (or every one) has no pending delivery, and shows the remaining number. An
 * interrupt ends only the wait: the sidecar continues.
 * @returns the exit code: 0 when nothing is pending, 1 when it was interrupted, or when the rest waits for handlers that
 *   are paused or removed.
 */
export async function waitForBacklog(
  client: AdminClient,
  handler: string | null,
  terminal: Terminal,
): Promise<number> {
  const stop = new AbortController()
  const offSignals = onSignals({ first: () => stop.abort(), second: () => process.exit(1) })
  try {
    return await watch(client, handler, terminal, stop.signal)
  } finally {
    offSignals()
  }
}

async function watch(
  client: AdminClient,
  handler: string | null,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  let shown = ''
  const end = (text: string, code: number): number => {
    if (shown !== '') terminal.err('\n')
    terminal.err(`${text}\n`)
    return code
  }
  for (;;) {
    const rows = (await client.list('/api/handlers', {}, ALL)).filter((row) =>
      handler === null ? field(row, 'state') !== 'removed' : field(row, 'name') === handler,
    )
    const left = rows.reduce((sum, row) => sum + (numberOf(row['pending']) ?? 0), 0)
    if (left === 0) {
      if (shown !== '') terminal.err('\n')
      return 0
    }
    const pending = rows.filter((row) => numberOf(row['pending']) !== 0)
    const states = new Set(pending.map((row) => field(row, 'state')))
    const waiting = [...states].every((state) => state === 'paused' || state === 'removed')
    if (waiting) {
      const who = pending.length === 1 ? 'the handler is' : 'the handlers are'
      return end(`${count(left, 'delivery', 'deliveries')} left, and ${who} ${[...states].join(' or ')}`, 1)
    }
    const down = rows.filter((row) => field(row, 'state') === 'down').map((row) => field(row, 'name'))
    const line = `${count(left, 'delivery', 'deliveries')} left${down.length > 0 ? `; ${down.join(', ')} unreachable` : ''}`
    if (terminal.width !== null && line !== shown) terminal.err(`\r${line.padEnd(shown.length)}`)
    if (terminal.width !== null) shown = line
    await sleep(INTERVAL, undefined, { signal }).catch(() => undefined)
    if (signal.aborted)
      return end(`stopped waiting; the sidecar continues with ${count(left, 'delivery', 'deliveries')}`, 1)
  }
}
