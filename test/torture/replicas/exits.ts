import type { Fault } from '../../checker/history.ts'
import type { Life } from '../sidecar.ts'
import type { Tally } from '../tally.ts'
import type { Replica } from './replica.ts'
import { isRowOf, pidOf, type Row } from './rows.ts'
import type { ReplicaWorld } from './world.ts'

/** Who may write again never says this; see StoreError. */
const FENCED = /another process has taken the store over/
/** A start needs the database, and does not wait for it. */
const UNREACHABLE =
  /no PostgreSQL answers|is not ready \(|database of the store cannot be reached|locks or overloads the store|locks the store in/
/** A stop that waits for what does not come has a limit of its own. In a storm there is nearly always a fault at that time. */
const TOO_LONG = /killed by timeout/
/**
 * A process is fenced when its leases are over, so long after its last renewal, milliseconds. The torture never sets the clock
 * of the database.
 */
const SILENT = 15_000
/** The end of a process is seen by us so much later than by the next one that starts, milliseconds at the most. */
const LATE = 2000

/** A row of a process that another one fenced. */
export interface Fencing extends Row {
  at: number
  /** For how long it had renewed nothing, milliseconds. */
  silent: number
}

/** What happened to one of the processes. */
export interface Past extends Pick<Replica, 'number' | 'diedAlone' | 'wasCutOff' | 'wasFrozen'> {
  sidecar: { readonly lives: readonly Life[] }
}

/** The processes that were fenced, by the database: nothing of ours is asked. */
export async function fencingsOf({
  books,
  tally,
}: Pick<ReplicaWorld, 'books' | 'tally'>): Promise<Fencing[]> {
  const rows = await books.run<{ process: string | null; started_at: number; at: number; silent: number }>(
    'SELECT process, started_at, at, silent FROM watch.fencings',
  )
  tally.add('fencings examined', rows.length)
  return rows.map(({ process, started_at: startedAt, at, silent }) => ({
    pid: pidOf(process),
    startedAt,
    at,
    silent,
  }))
}

/** Each end that no signal of ours caused has a reason, which its last words name and the database or our faults confirm. */
export function unexcused(
  { replicas, tally }: { replicas: readonly Past[]; tally: Tally },
  fencings: readonly Fencing[],
): Fault[] {
  return replicas.flatMap((replica) =>
    replica.diedAlone.flatMap((life) => {
      const excuse = excuseOf(replica, life, fencings)
      if (excuse !== null) tally.add(`ended by itself because ${excuse}`)
      return excuse === null ? withoutReason(replica, life) : []
    }),
  )
}

function withoutReason(replica: Past, { number, code, signal, words }: Life): Fault {
  const end = `replica ${replica.number}, life ${number}, ended by itself with ${code ?? signal}`
  const said = words.join(' ').slice(-500) || 'it said nothing'
  return { invariant: 'exit', message: `${end} for no reason that was there: ${said}` }
}

function excuseOf(replica: Past, life: Life, fencings: readonly Fencing[]): string | null {
  const said = life.words.join('\n')
  const until = life.until ?? Date.now()
  // In its last milliseconds Node has no handler of signals any more: a SIGTERM that comes then ends it.
  if (life.code !== 1 && !(life.stoppedAt !== null && life.signal === 'SIGTERM')) return null
  if (FENCED.test(said))
    return fencings.some((one) => isRowOf(one, life) && one.silent >= SILENT) ? 'it was fenced' : null
  const wasTroubled = (from: number): boolean =>
    replica.wasCutOff(from, until) || replica.wasFrozen(from, until)
  if (life.stoppedAt !== null && TOO_LONG.test(said))
    return wasTroubled(life.stoppedAt) ? 'the stop took too long' : null
  const isUnreached = !life.ready && UNREACHABLE.test(said) && wasTroubled(life.from)
  return isUnreached ? 'the database was out of reach' : null
}

/** I8: who lives and renews its leases is not fenced. */
export function hasty(replicas: readonly Past[], fencings: readonly Fencing[]): Fault[] {
  return replicas.flatMap(({ number, sidecar: { lives } }) =>
    lives.flatMap((life) =>
      fencings
        .filter(
          (one) => isRowOf(one, life) && one.silent < SILENT && (life.until ?? Infinity) > one.at + LATE,
        )
        .map(({ silent }) => ({
          invariant: 'I8',
          message: `replica ${number}, life ${life.number}, was fenced ${silent} ms after it had renewed its leases, and lived`,
        })),
    ),
  )
}
