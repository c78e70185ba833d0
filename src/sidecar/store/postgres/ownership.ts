import type { ReplicaRecord } from '../../../core/shards.ts'
import { StoreError } from '../../../core/store-error.ts'
import type { Clock } from '../../../std/ports.ts'
import {
  LEADER,
  Membership,
  type MembershipReports,
  type Granted,
  type LeaseTable,
  type Other,
  type Presence,
  type Survey,
  type Wanted,
} from '../membership.ts'
import type { Database, Queries, Transaction } from './database.ts'

/** Days for which the row of a dead process is kept: if it returns, it finds there whether its last COMMIT succeeded. */
const KEPT = 7

export interface LeaseTime {
  /** The clock by which leases are renewed and end. */
  lease: Clock
  /** The clock on which work is due, milliseconds; default: the database's. */
  now?: () => number
}

/** What people see of a process. */
export interface Introduction {
  id: string
  name: string
  version: string
  configuration: string | null
  /** The operating system's name of the process; null: it has none. */
  process: string | null
  /** By the wall clock of this machine. */
  startedAt: number
}

/**
 * Adds the row of a process, which each of its writes needs. The row is valid at once, for as long as after a renewal.
 * Otherwise a process of an older version would fence this one before its first renewal.
 * @returns a number that no other process has.
 */
export async function enter(
  queries: Queries,
  { id, name, version, configuration, process, startedAt }: Introduction,
): Promise<number> {
  const [row] = await queries.rows<{ number: number }>(
    `WITH old AS (
       DELETE FROM sidecar.replicas WHERE until < clock_timestamp() - interval '${KEPT} d' AND fenced RETURNING id
     ), forgotten AS (
       DELETE FROM sidecar.commits c USING old WHERE c.replica = old.id
     ), counted AS (
       INSERT INTO sidecar.commits (replica, last, noted) VALUES ($1, 0, 0)
     )
     INSERT INTO sidecar.replicas (id, name, version, started_at, configuration, process, until)
     VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp() + interval '15 s')
     RETURNING number`,
    [id, name, version, startedAt, configuration, process],
  )
  if (row === undefined) throw new Error('the process has no row')
  return row.number
}

/**
 * Fences processes that are gone, without waiting for their time: a sidecar that was killed and starts again need not wait
 * for its own old leases.
 */
export async function fenceGone(queries: Queries, isGone: (process: string) => boolean): Promise<void> {
  const rows = await queries.rows<{ id: string; process: string; renewal: string }>(
    `SELECT id, process, ${RENEWAL} AS renewal FROM sidecar.replicas WHERE NOT fenced AND process IS NOT NULL`,
  )
  for (const { id, process, renewal } of rows) if (isGone(process)) await fenceAt(queries, id, renewal)
}

/** The time of a last renewal, to the microsecond, as a text that no setting of the server changes. */
const RENEWAL = 'extract(epoch FROM seen)::text'

async function fenceAt(queries: Queries, dead: string, renewal: string): Promise<void> {
  await queries.rows('SELECT sidecar.take_over($1, $2::numeric)', [dead, renewal])
}

/** What the fence checks: who writes, and the number of the transaction. */
export interface Admission {
  me: string
  number: number
}

/** A transaction at the fence: its number, and the answer. */
interface Passage {
  number: number
  confirmed: Promise<unknown>
}

/**
 * What no other process does while a transaction is under way.
 *
 * - `writes`: write anything
 * - `lanes`: add facts, or lock lanes in any order
 */
export type Exclusion = 'writes' | 'lanes' | 'nothing'

/** What a transaction means for the other processes. */
interface Effect {
  /** What they must not do meanwhile. */
  excludes: Exclusion
  /** Afterwards there may be work for them: if they get no wake, they find it by this. */
  concernsOthers: boolean
}

interface OwnershipParts {
  database: Database
  time: LeaseTime
  id: string
  /** Runs `run` in a transaction of this process. */
  write: <T>(run: (queries: Queries) => Promise<T>) => Promise<T>
  /** Records the open attempts of the former owners of shards. */
  recover: (queries: Queries, shards: readonly number[]) => Promise<void>
  /** The number of claims of a shard that are not released. */
  claimed: (shard: number) => number
  reports: MembershipReports
}

/** The right to write: the rows of the processes and their leases, which end on the database's clock. */
export class Ownership implements LeaseTable {
  readonly membership: Membership
  readonly #parts: OwnershipParts
  /** Milliseconds between our steady clock and the database's. */
  #offset = 0
  /** The number of the last transaction. */
  #number = 0

  constructor(parts: OwnershipParts) {
    this.#parts = parts
    const { id, time, claimed, reports } = parts
    this.membership = new Membership({ id, table: this, clock: time.lease, claimed, ...reports })
  }

  /** The store's clock, milliseconds. */
  now(): number {
    const { lease, now } = this.#parts.time
    return now?.() ?? lease.steady() + this.#offset
  }

  async renew({ joined, streamConnected, report }: Presence, ttl: number): Promise<boolean> {
    const { database, id, time } = this.#parts
    const [row] = await database.heartbeat.rows<{ now: number }>(
      `UPDATE sidecar.replicas SET seen = clock_timestamp(), until = clock_timestamp() + $2::bigint * interval '1 ms',
         joined = $3, stream_connected = $4, report = $5
       WHERE id = $1 AND NOT fenced RETURNING floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now`,
      [id, ttl, joined, streamConnected, report],
    )
    if (row === undefined) return false
    this.#offset = row.now - time.lease.steady()
    return true
  }

  async survey(): Promise<Survey> {
    const [row] = await this.#parts.database.rows<{
      others: Record<string, Other>
      leader: boolean
      shards: number
      streamConnected: boolean | null
      noted: Record<string, number>
    }>(
      `SELECT coalesce(jsonb_object_agg(id, jsonb_build_object('renewal', ${RENEWAL}, 'isOver', until < clock_timestamp(), 'joined', joined))
           FILTER (WHERE NOT fenced AND id <> $1), '{}') AS others,
         EXISTS (SELECT 1 FROM sidecar.leases WHERE shard = ${LEADER} AND owner IS NULL) AS leader,
         (SELECT count(*) FROM sidecar.leases WHERE shard <> ${LEADER} AND owner IS NULL) AS shards,
         (SELECT r.stream_connected FROM sidecar.leases l JOIN sidecar.replicas r ON r.id = l.owner WHERE l.shard = ${LEADER})
           AS "streamConnected",
         (SELECT coalesce(jsonb_object_agg(replica, coalesce(noted, last)), '{}') FROM sidecar.commits
           WHERE replica <> $1 AND NOT fenced) AS noted
       FROM sidecar.replicas`,
      [this.#parts.id],
    )
    if (row === undefined) throw new Error('an aggregate has no row')
    const { others, leader, shards, streamConnected, noted } = row
    return {
      others: new Map(Object.entries(others)),
      free: { leader, shards },
      streamConnected: streamConnected ?? false,
      noted: new Map(Object.entries(noted)),
    }
  }

  async fence(dead: string, renewal: string): Promise<void> {
    await fenceAt(this.#parts.database, dead, renewal)
  }

  async take({ leader, shards }: Wanted): Promise<Granted[]> {
    return await this.#parts.write(async (queries) => {
      const granted = await queries.rows<Granted>(
        `UPDATE sidecar.leases SET owner = $1, epoch = nextval('sidecar.epochs')
         WHERE owner IS NULL AND (shard = ${LEADER} AND $2 OR shard = ANY (ARRAY (
           SELECT shard FROM sidecar.leases WHERE owner IS NULL AND shard <> ${LEADER} ORDER BY shard LIMIT $3 FOR UPDATE)))
         RETURNING shard, epoch`,
        [this.#parts.id, leader, shards],
      )
      await this.#parts.recover(
        queries,
        granted.map(({ shard }) => shard),
      )
      return granted
    })
  }

  async release(given: readonly Granted[]): Promise<void> {
    await this.#parts.write((queries) =>
      queries.change(
        `UPDATE sidecar.leases l SET owner = NULL FROM unnest($2::smallint[], $3::bigint[]) AS g(shard, epoch)
         WHERE l.shard = g.shard AND l.epoch = g.epoch AND l.owner = $1`,
        [this.#parts.id, given.map(({ shard }) => shard), given.map(({ epoch }) => epoch)],
      ),
    )
  }

  /**
   * The first statement of each transaction that has several: it is sent before this returns.
   * @throws {StoreError} at once, or in `confirmed`, when another process has taken the leases over.
   */
  confirm(transaction: Transaction, { excludes, concernsOthers }: Effect): Passage {
    const { me, number } = this.#next()
    const asking = transaction.rows('SELECT sidecar.admit($1, $2::bigint, $3, $4)', [
      me,
      number,
      excludes,
      concernsOthers,
    ])
    return { number, confirmed: this.#atFence(asking) }
  }

  /**
   * Runs one statement that is a transaction by itself, and checks the fence.
   * @throws {StoreError} as `confirm`.
   */
  async admit<T>(run: (admission: Admission) => Promise<T>): Promise<T> {
    return await this.#atFence(run(this.#next()))
  }

  #next(): Admission {
    const { refusal } = this.membership
    if (refusal !== null) throw refusal
    return { me: this.#parts.id, number: ++this.#number }
  }

  async #atFence<T>(asking: Promise<T>): Promise<T> {
    try {
      return await asking
    } catch (error) {
      throw error instanceof StoreError && error.kind === 'fenced' ? this.membership.lose(error) : error
    }
  }

  /**
   * Whether a transaction whose COMMIT had no answer was committed; waits for one that is under way.
   * @throws {StoreError} when this process has no row any more.
   */
  async isCommitted(number: number): Promise<boolean> {
    const [row] = await this.#parts.database.rows<{ last: number }>(
      'SELECT last FROM sidecar.commits WHERE replica = $1 FOR UPDATE',
      [this.#parts.id],
    )
    if (row === undefined) throw this.membership.lose(new StoreError('fenced'))
    return row.last === number
  }

  /** Frees all leases, so that others take them at once. This process writes nothing afterwards. */
  async resign(): Promise<void> {
    await this.#parts.database.rows('SELECT sidecar.resign($1)', [this.#parts.id])
  }

  async replicas(): Promise<ReplicaRecord[]> {
    const rows = await this.#parts.database.rows<Omit<ReplicaRecord, 'self'>>(
      `SELECT r.id, r.name, r.version, r.started_at AS "startedAt",
         l.leads, l.shards, l.epoch, r.configuration, r.report,
         floor(extract(epoch FROM clock_timestamp() - r.seen) * 1000)::bigint AS "seenAgo"
       FROM sidecar.replicas r, LATERAL (
         SELECT coalesce(bool_or(shard = ${LEADER}), false) AS leads, count(*) FILTER (WHERE shard <> ${LEADER}) AS shards,
           max(epoch) AS epoch
         FROM sidecar.leases WHERE owner = r.id) l
       WHERE NOT r.fenced ORDER BY r.number`,
    )
    return rows.map((row) => ({ ...row, self: row.id === this.#parts.id }))
  }
}
