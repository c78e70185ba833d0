import type { Ack } from '../../../core/delivery.ts'
import type { Call } from '../../../core/call.ts'
import type { Lease } from '../../../core/lease.ts'
import type { Clock, Log } from '../../../std/ports.ts'
import type {
  Batch,
  CallQueue,
  Committed,
  FactLog,
  HintQueue,
  LaneQueue,
  Operator,
  Reading,
  Resources,
  Store,
} from '../../../core/store.ts'
import type { CallStep } from '../../../core/call-machine.ts'
import { allShards } from '../../../core/shards.ts'
import { StoreError } from '../../../core/store-error.ts'
import { BegunAttempts, DeliveryRows, recoverBegun, Lanes } from './lanes.ts'
import { Calls } from './calls.ts'
import { Checkpoints, Facts, seqOf } from './log.ts'
import { Committer, createCommitted, explain, Ownership, recoverTime } from './committer.ts'
import type { Urgency, Witness } from './committer.ts'
import { Hints } from './hints.ts'
import { createMissed } from './missed.ts'
import { SessionOwners, createScoping } from './session-owners.ts'
import { openDatabase, openToAll, type Sqlite } from './open.ts'
import { createPruning } from './prune.ts'
import { createSettings } from './settings.ts'
import { createReader } from './reader.ts'
import { createRedelivery } from './redelivery.ts'
import { Sessions, TURN_ENDED } from './sessions.ts'
import { watchFile, type FileWatch } from './watch.ts'

export interface StoreOptions extends Witness {
  clock: Clock
  log: Log
  /** Called once, when another process took over or the files are gone: nothing is written or returned any more. */
  onLost?: (error: StoreError) => void
  /** A fact that was pending for `handler` is damaged: its delivery is a dead letter now. */
  onDeadLettered?: (handler: string) => void
}

export interface SqliteOptions extends StoreOptions {
  /** A file, or `:memory:`. */
  path: string
  /** Pages of 4 KiB after which the database counts as full, to test a full disk. */
  maxPages?: number
}

/** @throws {OperatorError} when the file cannot be used (open.ts). */
export function openSqliteStore({ path, maxPages, ...options }: SqliteOptions): Store {
  const { db, file, unlock } = openDatabase(path)
  const rights = path === ':memory:' ? null : openToAll(path)
  if (rights !== null)
    options.log.warn({ file: path, rights }, 'store: every user of this machine may read it; chmod 600')
  let store: Store
  let watch: FileWatch | null = null
  try {
    if (maxPages !== undefined) db.pragma(`max_page_count = ${Math.trunc(maxPages)}`)
    const ownership = takeStore(db, options.clock)
    store = createSqliteStore(db, options, ownership)
    if (file !== null) watch = watchFile({ db, file, ownership, clock: options.clock, log: options.log })
  } catch (error) {
    db.close()
    unlock()
    throw explain(error)
  }
  return {
    ...store,
    async close() {
      await (watch === null ? store.close() : watch.close(() => store.close()))
      unlock()
    },
  }
}

/** Takes the store and recovers what the last process left, both or neither. */
function takeStore(db: Sqlite, clock: Clock): Ownership {
  return new Ownership(db, () => {
    recoverBegun(db)
    recoverTime(db, new Checkpoints(db), clock)
  })
}

/** The store over a database that is open and up to date. Nothing is claimed yet, as after a crash. */
export function createSqliteStore(
  db: Sqlite,
  { clock, log: lines, onDeadLettered, onLost, ...witness }: StoreOptions,
  ownership = takeStore(db, clock),
  rows = new DeliveryRows(db),
): Store {
  ownership.onLost = onLost ?? null
  const checkpoints = new Checkpoints(db)
  const begun = new BegunAttempts(db, clock, (run, effect) => committer.write(run, effect, 'relaxed'))
  const committer: Committer = new Committer({ db, clock, witness, ownership, checkpoints, part: begun })
  const lanes = new Lanes({ db, ownership, begun, rows, onDamage: (pos) => markDamaged(pos) })
  const facts = new Facts(db, checkpoints, lanes)
  const hints = new Hints(db, ownership, clock.now() * 1000)
  const calls = new Calls(db, ownership)
  const sessions = new Sessions(db, clock, (callId, sessionId) =>
    lines.error(
      { callId, sessionId },
      'store: an action has the id of an earlier one: it makes no fact, and its call is not run',
    ),
  )
  const owners = new SessionOwners(db, checkpoints)
  const scoping = createScoping({ owners, facts, hints, sessions, checkpoints, clock })
  let closed = false

  /** Why nothing is written any more. */
  const refusal = (): StoreError | null => {
    if (closed) return new StoreError('closed')
    const { lost } = ownership
    if (lost !== null) witness.onRefused?.(lost)
    return lost
  }

  const write = <T>(run: () => T, effect?: (result: T) => void, urgency?: Urgency): Promise<T> => {
    const refused = refusal()
    return refused === null ? committer.write(run, effect, urgency) : Promise.reject(refused)
  }

  const ask = async <T>(run: () => T): Promise<T> => {
    // A process that lost the store must not act on what it reads.
    if (ownership.lost !== null) throw ownership.lost
    try {
      return run()
    } catch (error) {
      throw explain(error)
    }
  }

  const redelivery = createRedelivery(db, lanes, (run) => write(() => (rows.writeAll(), run())))
  const prune = createPruning(db, lanes, checkpoints)
  const missed = createMissed(db, checkpoints)

  /** Positions of damaged facts that are being marked. After a redelivery a fact is marked again. */
  const damaged = new Set<number>()
  /** A fact whose checksum does not match is never sent: its deliveries become dead letters. */
  const markDamaged = (pos: number): void => {
    if (damaged.has(pos)) return
    damaged.add(pos)
    lines.error({ pos }, 'store: a fact is damaged; its deliveries are dead letters now')
    const deadLetter = () => {
      rows.writeAll()
      const pending = db
        .prepare<[number], { lane: number; handler: string }>(
          `SELECT d.lane, h.name AS handler FROM delivery_rows d JOIN handlers h ON h.number = d.handler
           WHERE d.fact_pos = ? AND d.status = 0`,
        )
        .all(pos)
      const entry = `{"at":${clock.now()},"error":"damaged in the store","ms":0}`
      db.prepare(
        `UPDATE delivery_rows SET status = 2, log = CASE log WHEN '' THEN ? ELSE log || ',' || ? END
         WHERE fact_pos = ? AND status = 0`,
      ).run(entry, entry, pos)
      for (const { lane } of pending)
        db.prepare('UPDATE lanes SET pending = pending - 1 WHERE id = ?').run(lane)
      return pending
    }
    write(deadLetter, (dead) => dead.forEach(({ handler }) => onDeadLettered?.(handler)))
      .catch((error: unknown) =>
        lines.error({ pos, err: error }, 'store: the damaged fact could not be marked'),
      )
      .finally(() => damaged.delete(pos))
  }

  const commit = (given: Batch, acks: readonly Ack[]): Committed => {
    const into = createCommitted()
    const { checkpoint } = given
    if (checkpoint !== undefined && !checkpoints.move(checkpoint)) {
      into.stale.push(checkpoint.name)
      return into
    }
    const now = clock.steady()
    const addCall = (call: Call, lease: Lease | null): void => {
      if (calls.add(call, now)) into.newCalls.push({ callId: call.callId, lease })
    }
    const batch = given.scoped === true ? scoping(given, into) : given
    if (batch.facts !== undefined) {
      facts.append(batch.facts, into)
      for (const fact of batch.facts) if (fact.type === TURN_ENDED) sessions.endTurn(fact)
    }
    if (batch.hints !== undefined && batch.hints.length > 0) {
      hints.add(batch.hints, now)
      for (const { subject, channel, at } of batch.hints)
        if (subject !== undefined) facts.sight(subject, channel, at, into)
      into.hinted = true
    }
    if (batch.cursor !== undefined) advance('stream', batch.cursor)
    for (const reading of batch.readings ?? []) {
      const { claim } = reading.hint
      const isHeld = claim === null || ownership.holds(claim.lease)
      const written = isHeld ? sessions.write(reading) : null
      if (written === null) {
        into.stale.push(reading.sessionId)
        continue
      }
      facts.append(reading.facts, into)
      for (const call of reading.newCalls) addCall(call, null)
      if (written.defers)
        calls.wakeOthers(reading.sessionId, reading.session?.actions.map(({ callId }) => callId) ?? [])
      hints.done(reading.sessionId, reading.hint, now)
    }
    for (const call of batch.newCalls ?? []) addCall(call, call.state === 'running' ? ownership.lease : null)
    for (const step of batch.calls ?? []) {
      if (!calls.step(step, now)) into.refused.push(step.callId)
      else if (step.facts !== undefined) facts.append(step.facts, into)
    }
    if (acks.length > 0) lanes.acknowledge(acks, now)
    return into
  }

  /** Milliseconds from now until `dueAt`. */
  const waitUntil = (dueAt: number | null): number | null =>
    dueAt === null ? null : Math.max(0, dueAt - clock.steady())

  /** A cursor never moves back. One that is no number cannot be compared: the newest wins. */
  const advance = (name: string, value: string): void => {
    const known = seqOf(checkpoints.get(name))
    const given = seqOf(value)
    if (known === null || given === null || given > known) checkpoints.set(name, value)
  }

  const log: FactLog = {
    commit(batch, patience = 0) {
      let acks: readonly Ack[] = []
      return write(
        () => {
          if (batch.acks !== undefined) acks = batch.acks()
          return commit(batch, acks)
        },
        (committed) => {
          lanes.claimFresh(committed)
          lanes.acknowledged(acks)
          for (const { callId, lease } of committed.newCalls) if (lease !== null) calls.claimed(callId)
        },
        urgencyOf(batch, patience),
      )
    },
    missed: (expected, age) => write(() => missed(expected, clock.now() - age, clock.now())),
    prune: (age) =>
      write(() => {
        rows.writeAll()
        return prune(clock.now() - age, clock.now())
      }),
  }

  const resources: Resources = {
    known: (id, turnIds = []) => ask(() => sessions.known(id, turnIds)),
    knownTurns: (id, turnIds) => ask(() => sessions.turnsOf(id, turnIds)),
    summary: (id) => ask(() => sessions.summary(id)),
    glance: (ids) => ask(() => sessions.glance(ids)),
    alive: (after, limit) => ask(() => sessions.alive(after, limit)),
    active: (after, limit) => ask(() => sessions.active(after, limit)),
    count: () => ask(() => ({ ...sessions.count(), foreign: owners.countForeign() })),
    owners: (ids) => ask(() => owners.of(ids)),
    strangers: (age, after, limit) => ask(() => owners.strangers(clock.now() - age, after, limit)),
    heldFrames: () => ask(() => owners.held()),
  }

  const hintQueue: HintQueue = {
    claim: (room, except) => ask(() => hints.claim(room, clock.steady(), except)),
    async retry(hint, after) {
      await write(() => hints.postpone(hint, clock.steady() + after))
      hints.release(hint)
    },
    async defer(hint, after) {
      await write(() => hints.defer(hint, clock.steady() + after))
      hints.release(hint)
    },
    async release(hint) {
      hints.release(hint)
    },
    async finishSweep(hint) {
      await write(() => hints.swept(hint))
      hints.release(hint)
    },
    nextDue: (except) => ask(() => waitUntil(hints.next(except))),
  }

  const laneQueue: LaneQueue = {
    claim: (room) => ask(() => lanes.claim(room, clock.steady())),
    async retry(lane, after) {
      await write(() => lanes.postpone(lane, clock.steady() + after))
      lanes.release(lane)
    },
    async release(lane) {
      lanes.release(lane)
    },
    nextDue: (handler) => ask(() => waitUntil(lanes.next(handler))),
    read: (lane, after, limit, maxBytes) => ask(() => lanes.read(lane, after, limit, maxBytes)),
    begin: (lane, positions) => lanes.begin(lane, positions),
    end: (lane) => begun.end(lane),
    drop: (lane, positions) => lanes.drop(lane, positions),
  }

  const callQueue: CallQueue = {
    claim: (room) => ask(() => calls.claim(room, clock.steady())),
    async release(callId, lease) {
      calls.release(callId, lease)
    },
    nextDue: (room) => ask(() => waitUntil(calls.next(room))),
    get: (callId) => ask(() => calls.get(callId)),
  }

  const settings = createSettings({ db, clock, checkpoints, lanes, write, ask })

  const operator: Operator = {
    retry: async (selection) => ({ count: await redelivery.retry(selection) }),
    async replay(name, from) {
      const handler = lanes.configured.find(name)
      if (handler === null) return { count: 0 }
      return { count: await redelivery.replay(handler.number, (type) => handler.wants(type), from) }
    },
  }

  return {
    log,
    resources,
    hints: hintQueue,
    lanes: laneQueue,
    calls: callQueue,
    settings,
    operator,
    shards: allShards(),
    read: createReader(db, lanes, clock),

    async close() {
      if (closed) return
      begun.stop()
      // Every program that opens the file finds the pending deliveries in rows. If a full disk refuses this now, the
      // next start writes them.
      write(() => rows.writeAll()).catch(() => undefined)
      committer.flush(true)
      closed = true
      db.close()
    },
  }
}

function urgencyOf(batch: Batch, patience: number): Urgency {
  if (batch.newCalls !== undefined || batch.calls?.some(isResult) === true) return 'first'
  if (patience > 0) return { patience }
  return showsNothing(batch) ? 'relaxed' : 'now'
}

function isResult({ event }: CallStep): boolean {
  return event.type === 'result_fixed'
}

/** Reads that found nothing new. A power failure may lose them: their hints are then due again, and they are repeated. */
function showsNothing({ readings = [], ...others }: Batch): boolean {
  const isEmpty = ({ session, hint, facts, newCalls, opened, resolved, turns }: Reading): boolean =>
    session !== null &&
    // The first read of a session has no hint that would be due again.
    hint.claim !== null &&
    [facts, newCalls, opened, resolved, turns].every(({ length }) => length === 0)
  return readings.length > 0 && Object.keys(others).length === 0 && readings.every(isEmpty)
}
