import type { Batch, Committed, Store } from '../../src/core/store.ts'
import { StoreError } from '../../src/sidecar/store/error.ts'
import type { Disk } from './disk.ts'
import type { Fault } from './faults.ts'
import type { Sites } from './sites.ts'
import { never, type Life } from './life.ts'

type Method = Exclude<
  keyof Store,
  'read' | 'close' | 'doneHint' | 'releaseCall' | 'beginAttempts' | 'endAttempts' | 'dropAttempts'
>

const METHODS = {
  commit: true,
  checkpoint: true,
  setCheckpoint: true,
  claimHints: true,
  releaseHint: true,
  deferHint: true,
  finishSweep: true,
  nextHint: true,
  known: true,
  knownTurns: true,
  summary: true,
  glance: true,
  unseenSessions: true,
  countSessions: true,
  activeSessions: true,
  owners: true,
  strangers: true,
  heldFrames: true,
  claimLanes: true,
  readLane: true,
  releaseLane: true,
  nextLane: true,
  settle: true,
  claimCalls: true,
  call: true,
  nextCall: true,
  openCalls: true,
  registerHandlers: true,
  pauseHandler: true,
  subscriptions: true,
  saveSubscription: true,
  forgetSubscription: true,
  quarantine: true,
  retry: true,
  replay: true,
  missed: true,
  prune: true,
} satisfies Record<Method, true>

/** What is told of calls; of writes also when nobody is left whom the store could tell. */
export interface Written {
  stored(batch: Batch, committed: Committed): void
  pruned(before: number): void
  paused(handler: string, reason: string | null): void
  noted(checkpoint: string, value: string | null): void
  /** Asked when there is work. */
  looked(): void
}

/** The real store, with each of its calls a place at which the process may end. */
export function storeOf(life: Life, inner: Store, sites: Sites, disk: Disk, on: Written): Store {
  const wrapped: Record<string, unknown> = {
    read: inner.read,
    close: () => inner.close(),
    doneHint: (sessionId: string | null) => {
      if (life.alive) inner.doneHint(sessionId)
    },
    beginAttempts: (...args: Parameters<Store['beginAttempts']>) => {
      if (life.alive) inner.beginAttempts(...args)
    },
    endAttempts: (...args: Parameters<Store['endAttempts']>) => {
      if (life.alive) inner.endAttempts(...args)
    },
    dropAttempts: (...args: Parameters<Store['dropAttempts']>) => {
      if (life.alive) inner.dropAttempts(...args)
    },
    releaseCall: (callId: string) => {
      if (life.alive) inner.releaseCall(callId)
    },
  }
  for (const name of Object.keys(METHODS) as Method[]) {
    const call = inner[name] as (...args: unknown[]) => Promise<unknown>
    wrapped[name] = async (...args: unknown[]): Promise<unknown> => {
      const site = name === 'commit' ? `store.commit ${partOf(args[0] as Batch)}` : `store.${name}`
      const fault = life.alive
        ? sites.pass(site, 'before', writes(name, args) ? MAY_FAIL : MAY_CRASH)
        : 'crash'
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
      // It is written, also when nobody is left to be told.
      if (name === 'commit') on.stored(args[0] as Batch, result as Committed)
      else if (name === 'prune') on.pruned(args[0] as number)
      else if (name === 'pauseHandler') on.paused(args[0] as string, args[1] as string | null)
      else if (name === 'setCheckpoint') on.noted(args[0] as string, args[1] as string | null)
      if (!life.alive || sites.crashes(site, 'after')) return await never()
      return result
    }
  }
  return wrapped as unknown as Store
}

/** Asked by poll loops that have nothing to take. */
const LOOKS: ReadonlySet<Method> = new Set<Method>(['nextHint', 'nextLane', 'nextCall'])

/** What the disk may refuse. */
const WRITES: ReadonlySet<Method> = new Set<Method>([
  'commit',
  'setCheckpoint',
  'releaseHint',
  'deferHint',
  'finishSweep',
  'releaseLane',
  'settle',
  'pauseHandler',
  'saveSubscription',
  'missed',
  'prune',
  'retry',
  'replay',
])
/** A lane that is given back without a time is given back in memory. */
function writes(name: Method, args: readonly unknown[]): boolean {
  return WRITES.has(name) && (name !== 'releaseLane' || args[1] !== undefined)
}

const MAY_CRASH: readonly Fault[] = ['crash']
const MAY_FAIL: readonly Fault[] = ['crash', 'disk_error', 'disk_slow']

/** What a commit is mainly about. */
function partOf(batch: Batch): string {
  if (batch.cursor !== undefined) return 'frames'
  if (batch.readings !== undefined) return 'reading'
  if (batch.calls !== undefined) return `call ${batch.calls[0]?.set.state ?? 'note'}`
  if (batch.newCalls !== undefined) return 'new calls'
  if (batch.facts !== undefined) return 'items'
  if (batch.owners !== undefined) return 'owners'
  return 'hints'
}
