import type { CallState } from '../../src/core/call.ts'
import type { CallEvent } from '../../src/core/call-machine.ts'
import type { Batch, Committed, Store } from '../../src/core/store.ts'
import { StoreError } from '../../src/core/store-error.ts'
import type { Disk } from './disk.ts'
import type { Fault } from './faults.ts'
import type { Passages } from './sites.ts'
import { never, type Life } from './life.ts'

type Part = Exclude<keyof Store, 'shards' | 'read' | 'close'>
type Method = { [P in Part]: `${P}.${Extract<keyof Store[P], string>}` }[Part]

/** What happens in memory alone: no place at which the process may end. */
const IN_MEMORY = ['hints.release', 'calls.release', 'lanes.begin', 'lanes.end', 'lanes.drop'] as const
type Site = Exclude<Method, (typeof IN_MEMORY)[number]>

const SITES = {
  'log.commit': true,
  'log.missed': true,
  'log.prune': true,
  'resources.known': true,
  'resources.knownTurns': true,
  'resources.summary': true,
  'resources.glance': true,
  'resources.alive': true,
  'resources.active': true,
  'resources.count': true,
  'resources.owners': true,
  'resources.strangers': true,
  'resources.heldFrames': true,
  'hints.claim': true,
  'hints.retry': true,
  'hints.defer': true,
  'hints.finishSweep': true,
  'hints.nextDue': true,
  'lanes.claim': true,
  'lanes.retry': true,
  'lanes.release': true,
  'lanes.nextDue': true,
  'lanes.read': true,
  'calls.claim': true,
  'calls.nextDue': true,
  'calls.get': true,
  'settings.checkpoint': true,
  'settings.setCheckpoint': true,
  'settings.registerHandlers': true,
  'settings.pauseHandler': true,
  'settings.subscriptions': true,
  'settings.saveSubscription': true,
  'settings.forgetSubscription': true,
  'settings.quarantine': true,
  'operator.retry': true,
  'operator.replay': true,
} satisfies Record<Site, true>

/** The reports about calls; for writes also after the end of the process that called the store. */
export interface Written {
  stored(batch: Batch, committed: Committed): void
  pruned(age: number): void
  paused(handler: string, reason: string | null): void
  noted(checkpoint: string, value: string | null): void
  /** Asked when there is work. */
  looked(): void
  /** The answer to a COMMIT is lost; settles when it is known. Absent: a store that is here knows at once. */
  unknown?: () => Promise<void>
  /** The same for a frame that came alone: the write fails, though it is stored. */
  forgotten?: (committed: Committed) => Promise<never>
}

/** The real store, with each of its calls a place at which the process may end. */
export function storeOf(life: Life, inner: Store, sites: Passages, disk: Disk, on: Written): Store {
  const parts: Record<string, Record<string, unknown>> = {}
  /** The last COMMIT whose reply was lost: settles when its outcome is known. */
  let asking: Promise<void> | null = null
  const methodOf = (name: Method): [Record<string, unknown>, string, (...args: unknown[]) => unknown] => {
    const [part = '', verb = ''] = name.split('.')
    const methods = inner[part as Part] as unknown as Record<string, (...args: unknown[]) => unknown>
    const method = methods[verb]
    if (method === undefined) throw new Error(`the store has no ${name}`)
    return [(parts[part] ??= {}), verb, method]
  }
  for (const name of IN_MEMORY) {
    const [part, verb, call] = methodOf(name)
    part[verb] = (...args: unknown[]): unknown => (life.alive ? call(...args) : undefined)
  }
  for (const name of Object.keys(SITES) as Site[]) {
    const [part, verb, call] = methodOf(name)
    part[verb] = async (...args: unknown[]): Promise<unknown> => {
      const site = name === 'log.commit' ? `store.commit ${partOf(args[0] as Batch)}` : `store.${name}`
      const fault = life.alive ? sites.pass(site, 'before', WRITES.has(name) ? MAY_FAIL : MAY_CRASH) : 'crash'
      if (fault === 'crash') return await never()
      if (fault === 'disk_error') {
        await disk.refuse()
        throw new StoreError('full')
      }
      if (fault === 'disk_slow') disk.slow()
      if (LOOKS.has(name)) on.looked()
      let result: unknown
      try {
        result = await call(...args)
      } catch (error) {
        if (!life.alive) return await never()
        throw error
      }
      // It is written, also after the end of the calling process.
      if (name === 'log.commit') on.stored(args[0] as Batch, result as Committed)
      else if (name === 'log.prune') on.pruned(args[0] as number)
      else if (name === 'settings.pauseHandler') on.paused(args[0] as string, args[1] as string | null)
      else if (name === 'settings.setCheckpoint') on.noted(args[0] as string, args[1] as string | null)
      if (!life.alive) return await never()
      const lost = name === 'log.commit' && on.unknown !== undefined ? UNKNOWN : MAY_CRASH
      const after = sites.pass(site, 'after', lost)
      if (after === 'crash') return await never()
      if (after === 'lost_reply') {
        if (isFrame(args[0] as Batch)) return await on.forgotten?.(result as Committed)
        asking = on.unknown?.() ?? null
      }
      // Writes that shared the transaction, and those behind it, have their replies in its order.
      if (asking !== null && WRITES.has(name)) await asking
      return result
    }
  }
  return { ...parts, shards: inner.shards, read: inner.read, close: () => inner.close() } as unknown as Store
}

/** Asked by poll loops that have nothing to take. */
const LOOKS: ReadonlySet<Site> = new Set<Site>(['hints.nextDue', 'lanes.nextDue', 'calls.nextDue'])

/** What the disk may refuse. */
const WRITES: ReadonlySet<Site> = new Set<Site>([
  'log.commit',
  'settings.setCheckpoint',
  'hints.retry',
  'hints.defer',
  'hints.finishSweep',
  'lanes.retry',
  'settings.pauseHandler',
  'settings.saveSubscription',
  'log.missed',
  'log.prune',
  'operator.retry',
  'operator.replay',
])

const MAY_CRASH: readonly Fault[] = ['crash']
const UNKNOWN: readonly Fault[] = ['crash', 'lost_reply']
const MAY_FAIL: readonly Fault[] = ['crash', 'disk_error', 'disk_slow']

/** The state that an event of a call is written as; what is not listed changes none. */
const WRITTEN: Readonly<Partial<Record<CallEvent['type'], CallState>>> = {
  run_begun: 'running',
  run_begun_again: 'running',
  run_withdrawn: 'received',
  run_failed: 'received',
  result_fixed: 'finished',
  app_answered: 'finished',
  answered: 'answered',
  not_delivered: 'not_delivered',
  failed: 'failed',
}

/** A frame that came alone: its statements and its COMMIT are sent at once. */
function isFrame({ facts, hints, scoped, cursor, ...more }: Batch): boolean {
  const isAlone = facts?.length === 1 && (hints ?? []).length === 0 && scoped !== true
  return isAlone && cursor !== undefined && Object.keys(more).length === 0
}

/** What a commit is mainly about. */
function partOf(batch: Batch): string {
  if (batch.acks !== undefined) return 'acks'
  if (batch.cursor !== undefined) return 'frames'
  if (batch.readings !== undefined) return 'reading'
  if (batch.calls !== undefined) return `call ${WRITTEN[batch.calls[0]?.event.type ?? 'postponed'] ?? 'note'}`
  if (batch.newCalls !== undefined) return 'new calls'
  if (batch.facts !== undefined) return 'items'
  if (batch.owners !== undefined) return 'owners'
  return 'hints'
}
