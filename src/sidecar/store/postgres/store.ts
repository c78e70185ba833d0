import type { Ack } from '../../../core/delivery.ts'
import type { Fact } from '../../../core/fact.ts'
import type { Call } from '../../../core/call.ts'
import type { Batch, Committed, Settings, Store } from '../../../core/store.ts'
import type { WakeTopic } from '../../../core/shards.ts'
import { StoreError } from '../../../core/store-error.ts'
import type { Clock, Random } from '../../../std/ports.ts'
import { messageOf } from '../../../std/errors.ts'
import { createThrottledLog } from '../../../std/throttled-log.ts'
import type { RenewalOutcome } from '../../../core/observer.ts'
import { placeOf } from '../membership.ts'
import { createCommitted } from '../sqlite/committer.ts'
import { TURN_ENDED } from '../sqlite/sessions.ts'
import { KEPT as QUARANTINED } from '../sqlite/settings.ts'
import type { StoreOptions } from '../sqlite/store.ts'
import { BegunAttempts, recoverBegun } from './begun.ts'
import { Calls } from './calls.ts'
import { Committer, together, type Kind, type Manner, type Trial } from './committer.ts'
import { type Database, type DatabaseAddress, type Queries } from './database.ts'
import { Hints } from './hints.ts'
import { gatherLanes, Lanes, shardOfLane } from './lanes.ts'
import { checkpoints, Facts, type Frame } from './log.ts'
import { enter, fenceGone, Ownership, type Admission, type LeaseTime } from './ownership.ts'
import { findMissed, Pruning } from './prune.ts'
import { createReader } from './reader.ts'
import { Redelivery } from './redelivery.ts'
import { migrate } from './schema.ts'
import { assertUsable, connectTo, explainRefusal } from './server.ts'
import { owners, Scoping } from './session-owners.ts'
import { Sessions } from './sessions.ts'
import { Wakes } from './wakes.ts'

export interface PostgresOptions extends StoreOptions {
  database: DatabaseAddress
  /** Makes the name of this process as an owner. */
  random: Random
}

/** What the operating system knows about processes. */
interface Processes {
  /** The name of this process; null: it has none. */
  identify(): string | null
  /** Whether the process with that name is certainly gone. */
  isGone(name: string): boolean
}

/** How a process appears in the list of replicas. */
export interface Appearance {
  name?: string
  version?: string
  configuration?: string | null
  process?: Processes
  onRenewal?: (outcome: RenewalOutcome) => void
}

const OF_FEW: Manner = { kind: 'few' }
const OF_HINTS: Manner = { kind: 'few', hints: true }
const OF_LANE: Manner = { kind: 'lane' }

/**
 * Opens the store, beside other processes that have it open.
 * @throws {OperatorError} when the database cannot be used.
 */
export async function openPostgresStore(
  options: PostgresOptions,
  time: Partial<LeaseTime> = {},
  { name = '', version = '', configuration = null, process, onRenewal }: Appearance = {},
): Promise<Store> {
  const { clock, log, random } = options
  // When a server ends, all connections break at once, so the line is throttled.
  const onError = createThrottledLog<Error>(clock, (times, { message }) =>
    log.warn({ times, error: message }, 'store: connections to the database broke; new ones are opened'),
  )
  const database = await connectTo({ ...options.database, lookups: true }, onError)
  try {
    await assertUsable(database, options.database.url)
    await migrate(database, {
      onWait: () =>
        log.warn(
          {},
          'store: the schema must change, and another program, such as a backup, locks it; waiting',
        ),
    })
    const id = random.hex(16)
    if (process !== undefined) await fenceGone(database, process.isGone)
    const number = await enter(database, {
      id,
      name,
      version,
      configuration,
      process: process?.identify() ?? null,
      startedAt: clock.now(),
    })
    const store = createStore({ database, id, number, time: { lease: clock, ...time }, onRenewal }, options)
    await store.begin()
    return store
  } catch (error) {
    await database.close()
    throw explainRefusal(error, options.database.url)
  }
}

/** One try to commit a batch; a transaction that fails may be run again. */
interface Pass {
  kind: Kind
  /** A batch that is one frame, and is stored by one statement; otherwise null. */
  frame: Frame | null
  acks: readonly Ack[]
  /** Calls that are claimed for the caller. */
  taken: Set<string>
  /** The shards of calls that took a step. */
  stepped: number[]
}

interface Place {
  database: Database
  id: string
  number: number
  time: LeaseTime
  onRenewal: Appearance['onRenewal']
}

function createStore(
  { database, id, number, time, onRenewal }: Place,
  { clock, log: lines, onDeadLettered, onLost, ...witness }: PostgresOptions,
): Store & { begin(): Promise<void> } {
  const now = (): number => ownership.now()
  const ownership = new Ownership({
    database,
    time,
    id,
    write: (run) => write(run),
    recover: recoverBegun,
    claimed: (shard) => hints.claimed(shard) + lanes.claimed(shard) + calls.claimed(shard),
    reports: {
      onRenewal,
      onLost,
      onFailed: createThrottledLog<unknown>(clock, (times, error) =>
        lines.warn({ times, error: messageOf(error) }, 'store: the leases could not be read or taken'),
      ),
    },
  })
  const { membership } = ownership
  const wakes = new Wakes({ database, clock: time.lease, log: lines, membership })
  membership.subscribe({ lost: () => wakes.noteLeases(), missed: () => wakes.noteGap() })
  const begun = new BegunAttempts(clock, (run, effect) => write(run, effect, OF_FEW))
  const committer = new Committer({
    database,
    clock,
    ownership,
    witness,
    part: begun,
    onShared: (number) => wakes.noteCommit(number),
  })
  const lanes = new Lanes(membership, begun, (pos) => markDamaged(pos))
  const facts = new Facts(lanes)
  const hints = new Hints(membership, number)
  const calls = new Calls(membership)
  const sessions = new Sessions(now, (callId, sessionId) =>
    lines.error(
      { callId, sessionId },
      'store: an action has the id of an earlier one: it makes no fact, and its call is not run',
    ),
  )
  const scoping = new Scoping({ facts, hints, sessions })
  let closed = false

  const refuse = (): void => {
    if (closed) throw new StoreError('closed')
    const { refusal } = membership
    if (refusal === null) return
    witness.onRefused?.(refusal)
    throw refusal
  }
  async function write<T>(
    run: (queries: Queries, trial: Trial) => Promise<T>,
    effect?: (result: T) => void,
    manner?: Manner<T>,
  ): Promise<T> {
    refuse()
    return await committer.write(run, effect, manner)
  }
  /** A process whose lease is over must not act on what it reads. */
  async function ask<T>(read: (queries: Queries) => Promise<T>): Promise<T> {
    if (membership.refusal !== null) throw membership.refusal
    const found = await read(database)
    if (membership.refusal !== null) throw membership.refusal
    return found
  }
  /** What was claimed while the lease ended is released: this process may renew its lease, and the caller has an error. */
  async function claim<T>(take: (queries: Queries) => Promise<T[]>, release: (one: T) => void): Promise<T[]> {
    let claimed: T[] = []
    try {
      return await ask(async (queries) => (claimed = await take(queries)))
    } catch (error) {
      for (const one of claimed) release(one)
      throw error
    }
  }

  const damaged = new Set<number>()
  /** A fact whose checksum does not match is never sent: its deliveries become dead letters. */
  const markDamaged = (pos: number): void => {
    if (damaged.has(pos)) return
    damaged.add(pos)
    lines.error({ pos }, 'store: a fact is damaged; its deliveries are dead letters now')
    const entry = `{"at":${clock.now()},"error":"damaged in the store","ms":0}`
    write(
      (queries) =>
        queries.rows<{ handler: string }>(
          `WITH dead AS (
             INSERT INTO sidecar.delivery_rows AS d (fact_pos, handler, lane, status, attempts, log)
             SELECT fact_pos, handler, lane, 2, 0, $1 FROM sidecar.deliveries WHERE fact_pos = $2 AND status = 0
             ON CONFLICT (fact_pos, handler) DO UPDATE SET status = 2,
               log = d.log || CASE d.log WHEN '' THEN '' ELSE ',' END || excluded.log
             RETURNING lane, handler
           ), shrunk AS (UPDATE sidecar.lanes l SET pending = pending - 1 FROM dead WHERE l.id = dead.lane)
           SELECT h.name AS handler FROM dead JOIN sidecar.handlers h ON h.number = dead.handler`,
          [entry, pos],
        ),
      (dead) => dead.forEach(({ handler }) => onDeadLettered?.(handler)),
    )
      .catch((error: unknown) =>
        lines.error({ pos, err: error }, 'store: the damaged fact could not be marked'),
      )
      .finally(() => damaged.delete(pos))
  }

  const commit = async (
    queries: Queries,
    given: Batch,
    { kind, frame, acks, taken, stepped }: Pass,
    { optimistic, sent }: Trial,
  ): Promise<Committed> => {
    const into = createCommitted()
    if (frame !== null) {
      const appended = facts.appendFrame(queries, frame, into, optimistic)
      sent()
      await appended
      return into
    }
    const { checkpoint } = given
    if (checkpoint !== undefined && !(await checkpoints.move(queries, checkpoint))) {
      into.stale.push(checkpoint.name)
      return into
    }
    const at = now()
    const addCalls = async (given: readonly Call[]): Promise<void> => {
      if (given.length > 0) into.newCalls.push(...(await calls.add(queries, given, { now: at, taken })))
    }
    const batch =
      given.scoped === true ? await scoping.apply(queries, given, into, { at: clock.now(), now: at }) : given
    const advanced = batch.cursor === undefined ? null : checkpoints.advance(queries, batch.cursor)
    if (batch.facts === undefined) await advanced
    else {
      const adding =
        optimistic && kind === 'frames'
          ? facts.appendNew(queries, batch.facts, into)
          : facts.append(queries, batch.facts, into)
      await together([advanced, adding])
      for (const fact of batch.facts) if (fact.type === TURN_ENDED) await sessions.endTurn(queries, fact)
    }
    if (batch.hints !== undefined && batch.hints.length > 0) {
      await hints.add(queries, batch.hints, at)
      for (const { subject, channel, at: seenAt } of batch.hints)
        if (subject !== undefined) await facts.sight(queries, { subject, channel, at: seenAt }, into)
      into.hinted = true
    }
    for (const reading of batch.readings ?? []) {
      const { claim } = reading.hint
      const isHeld = claim === null || membership.holds(claim.lease)
      const written = isHeld ? await sessions.write(queries, reading) : null
      if (written === null) {
        into.stale.push(reading.sessionId)
        continue
      }
      await facts.append(queries, reading.facts, into)
      await addCalls(reading.newCalls)
      const required = reading.session?.actions.map(({ callId }) => callId) ?? []
      if (written.defers) await calls.wakeOthers(queries, reading.sessionId, required)
      await hints.done(queries, reading.sessionId, reading.hint, at)
    }
    await addCalls(batch.newCalls ?? [])
    for (const step of batch.calls ?? []) {
      const shard = await calls.step(queries, step, at)
      if (shard === null) {
        into.refused.push(step.callId)
        continue
      }
      stepped.push(shard)
      if (step.facts !== undefined) await facts.append(queries, step.facts, into)
    }
    await lanes.acknowledge(queries, acks, { now: at, optimistic })
    return into
  }

  const storeAlone =
    (frame: Frame) =>
    async (queries: Queries, admission: Admission): Promise<Committed> => {
      const into = createCommitted()
      await facts.appendAlone(queries, frame, into, admission)
      return into
    }

  /** Reports a commit to the other processes that have work from it. */
  const wakeOthers = (batch: Batch, committed: Committed, { stepped }: Pass): void => {
    if (batch.cursor !== undefined) wakes.noteCursor(batch.cursor)
    if (membership.live <= 1) return
    const note = (topic: WakeTopic, shard: number): void => {
      if (!membership.mayClaim(shard)) wakes.note({ topics: [topic], shard })
    }
    if (committed.facts.length > 0) wakes.note({ topics: ['facts'] })
    for (const { lane, deliveries } of committed.lanes)
      note('lanes', shardOfLane(deliveries[0]?.fact, lane.key))
    for (const { sessionId, subject } of batch.hints ?? []) {
      const shard = placeOf(sessionId ?? '')
      note('hints', shard)
      if (sessionId !== null && subject !== undefined && !membership.mayClaim(shard))
        wakes.note({ topics: ['hints'], shard, hint: { sessionId, subject } })
    }
    // Held frames make a hint for their session.
    if (batch.scoped === true && committed.hinted)
      for (const { sessionId } of batch.facts ?? []) if (sessionId !== null) note('hints', placeOf(sessionId))
    if (committed.newCalls.length > 0)
      for (const { sessionId } of batch.newCalls ?? []) note('calls', placeOf(sessionId))
    for (const shard of stepped) note('calls', shard)
  }

  /** Milliseconds from now until `dueAt`. */
  const waitUntil = (dueAt: number | null): number | null =>
    dueAt === null ? null : Math.max(0, dueAt - now())
  const redelivery = new Redelivery(lanes, write)
  const wake = (topic: WakeTopic): void => wakes.note({ topics: [topic] })
  const pruning = new Pruning(lanes)
  return {
    log: {
      async commit(batch, patience = 0) {
        const kind = kindOf(batch)
        const frame = kind === 'frames' ? frameOf(batch, lanes) : null
        const pass: Pass = { kind, frame, acks: [], taken: new Set(), stepped: [] }
        try {
          return await write(
            async (queries, trial) => {
              calls.withdraw(pass.taken)
              pass.taken.clear()
              pass.stepped = []
              pass.acks = batch.acks?.() ?? []
              return await commit(queries, batch, pass, trial)
            },
            (committed) => {
              lanes.claimFresh(committed)
              lanes.acknowledged(pass.acks)
              wakeOthers(batch, committed, pass)
            },
            {
              patience,
              kind,
              hints: batch.hints !== undefined,
              single: frame === null ? undefined : storeAlone(frame),
            },
          )
        } catch (error) {
          calls.withdraw(pass.taken)
          throw error
        }
      },
      missed: (expected, age) =>
        write((queries) => findMissed(queries, expected, { before: clock.now() - age, now: clock.now() })),
      prune: (age) => write((queries) => pruning.step(queries, clock.now() - age, clock.now())),
    },
    resources: {
      known: (id, turnIds = []) => ask((queries) => sessions.known(queries, id, turnIds)),
      knownTurns: (id, turnIds) => ask((queries) => sessions.turnsOf(queries, id, turnIds)),
      summary: (id) => ask((queries) => sessions.summary(queries, id)),
      glance: (ids) => ask((queries) => sessions.glance(queries, ids)),
      alive: (after, limit) => ask((queries) => sessions.alive(queries, after, limit)),
      active: (after, limit) => ask((queries) => sessions.active(queries, after, limit)),
      count: () =>
        ask(async (queries) => ({
          ...(await sessions.count(queries)),
          foreign: await owners.countForeign(queries),
        })),
      owners: (ids) => ask((queries) => owners.of(queries, ids)),
      strangers: (age, after, limit) =>
        ask((queries) =>
          owners.strangers(queries, Math.min(clock.now() - age, Number.MAX_SAFE_INTEGER), after, limit),
        ),
      heldFrames: () => ask((queries) => owners.held(queries)),
    },
    hints: {
      claim: (room, except) =>
        claim(
          (queries) => hints.claim(queries, { room, except }, now()),
          (hint) => hints.release(hint),
        ),
      async retry(hint, after) {
        await write((queries) => hints.postpone(queries, hint, now() + after), undefined, OF_HINTS)
        hints.release(hint)
      },
      async defer(hint, after) {
        await write((queries) => hints.defer(queries, hint, now() + after), undefined, OF_HINTS)
        hints.release(hint)
      },
      async release(hint) {
        hints.release(hint)
      },
      async finishSweep(hint) {
        await write((queries) => hints.swept(queries, hint), undefined, OF_HINTS)
        hints.release(hint)
      },
      nextDue: async (except) => waitUntil(await ask((queries) => hints.next(queries, except))),
    },
    lanes: {
      claim: (room) =>
        claim(
          (queries) => lanes.claim(queries, room, now()),
          (lane) => lanes.release(lane),
        ),
      async retry(lane, after) {
        await write((queries) => lanes.postpone(queries, lane, now() + after), undefined, OF_LANE)
        lanes.release(lane)
      },
      async release(lane) {
        lanes.release(lane)
      },
      nextDue: async (handler) => waitUntil(await ask((queries) => lanes.next(queries, handler))),
      read: (lane, after, limit, maxBytes) =>
        ask((queries) => lanes.read(queries, lane, { after, limit, maxBytes })),
      begin: (lane, positions) => lanes.begin(lane, positions),
      end: (lane) => begun.end(lane),
      drop: (lane, positions) => lanes.drop(lane, positions),
    },
    calls: {
      claim: (room) =>
        claim(
          (queries) => calls.claim(queries, room, now()),
          ({ call, lease }) => calls.release(call.callId, lease),
        ),
      async release(callId, lease) {
        calls.release(callId, lease)
      },
      nextDue: async (room) => waitUntil(await ask((queries) => calls.next(queries, room))),
      get: (callId) => ask((queries) => calls.get(queries, callId)),
    },
    settings: createSettings({ clock, lanes, write, ask, wake }),
    operator: {
      async retry(selection) {
        try {
          return { count: await redelivery.retry(selection) }
        } finally {
          wake('lanes')
        }
      },
      async replay(name, from) {
        const handler = lanes.configured.find(name)
        if (handler === null) return { count: 0 }
        // It takes several transactions, of which a later one may fail.
        try {
          return { count: await redelivery.replay(handler.number, (type) => handler.wants(type), from) }
        } finally {
          wake('lanes')
        }
      },
    },
    shards: {
      owns: (sessionId) => membership.refusal === null && membership.mayClaim(placeOf(sessionId ?? '')),
      get leads() {
        return membership.leads
      },
      subscribe: (subscriber) => membership.subscribe(subscriber),
      async join() {
        wakes.start()
        await membership.join()
        wakes.noteLeases()
      },
      async leave() {
        await membership.leave()
        wakes.noteLeases()
      },
      replicas: () => ownership.replicas(),
      describe: (report) => membership.describe(report),
      report: ({ streamConnected }) => membership.connected(streamConnected),
      get streamConnected() {
        return membership.streamConnected
      },
      shareTransient: (event) => wakes.noteTransient(event),
    },
    read: createReader(database, database.people, { lanes, clock }),
    begin: () => membership.begin(),
    async close() {
      if (closed) return
      // Later writes would find that this process has resigned.
      closed = true
      begun.stop()
      await committer.finish()
      membership.stop()
      wakes.stop()
      if (membership.lost === null) {
        await ownership.resign().catch(() => undefined)
        await wakes.sendLeases()
      }
      await database.close()
    },
  }
}

function createSettings({
  clock,
  lanes,
  write,
  ask,
  wake,
}: {
  clock: Clock
  lanes: Lanes
  write: <T>(run: (queries: Queries) => Promise<T>) => Promise<T>
  ask: <T>(read: (queries: Queries) => Promise<T>) => Promise<T>
  /** Reports a change to the other processes. */
  wake: (topic: WakeTopic) => void
}): Settings {
  return {
    checkpoint: (name) => ask((queries) => checkpoints.get(queries, name)),
    async setCheckpoint(name, value, topic) {
      await write((queries) => checkpoints.set(queries, name, value))
      if (topic !== undefined) wake(topic)
    },
    async registerHandlers(handlers) {
      const records = await write((queries) => lanes.register(queries, handlers))
      for (const handler of lanes.configured.ordered)
        while (await write((queries) => gatherLanes(queries, handler)));
      wake('handlers')
      return records
    },
    async pauseHandler(name, reason) {
      const since = reason === null ? null : clock.now()
      await write((queries) =>
        queries.change('UPDATE sidecar.handlers SET paused_at = $1, pause_reason = $2 WHERE name = $3', [
          since,
          reason,
          name,
        ]),
      )
      wake('handlers')
      return since
    },
    async subscriptions() {
      const rows = await ask((queries) =>
        queries.rows<{
          id: string
          url: string
          secret: string
          created_at: number
          retired_at: number | null
        }>(
          'SELECT id, url, secret, created_at, retired_at FROM sidecar.subscriptions ORDER BY created_at DESC',
        ),
      )
      return rows.map(({ id, url, secret, created_at: createdAt, retired_at: retiredAt }) => ({
        id,
        url,
        secret,
        createdAt,
        retiredAt,
      }))
    },
    async saveSubscription({ id, url, secret, createdAt, retiredAt }) {
      await write((queries) =>
        queries.change(
          `INSERT INTO sidecar.subscriptions (id, url, secret, created_at, retired_at) VALUES ($1, $2, $3, $4, $5)
           ON CONFLICT (id) DO UPDATE SET retired_at = excluded.retired_at`,
          [id, url, secret, createdAt, retiredAt],
        ),
      )
      wake('secrets')
    },
    async forgetSubscription(id) {
      await write((queries) => queries.change('DELETE FROM sidecar.subscriptions WHERE id = $1', [id]))
      wake('secrets')
    },
    async quarantine({ at, source, reason, bytes }) {
      await write((queries) =>
        queries.change(
          `WITH kept AS (INSERT INTO sidecar.quarantine (at, source, reason, bytes) VALUES ($1, $2, $3, $4) RETURNING id)
           DELETE FROM sidecar.quarantine WHERE id <= (SELECT id FROM kept) - ${QUARANTINED}`,
          [at, source, reason, bytes],
        ),
      )
    },
  }
}

/** null: there are several frames, or a handler has a lane for each fact. */
function frameOf({ facts = [], cursor }: Batch, lanes: Lanes): Frame | null {
  const [fact, second] = facts
  if (fact === undefined || second !== undefined) return null
  const places = lanes.lanesOf(fact)
  return places === null ? null : { fact, cursor: cursor ?? null, lanes: places }
}

function kindOf(batch: Batch): Kind {
  const { facts, cursor: _, ...more } = batch
  if (facts?.every(isFrameAlone) === true && Object.keys(more).length === 0) return 'frames'
  if (batch.acks !== undefined && Object.keys(batch).length === 1) return 'outcomes'
  return mayAddFacts(batch) ? 'facts' : 'few'
}

/** Whether its transaction touches neither its turn nor what was seen of it before. */
function isFrameAlone({ type, subject }: Fact): boolean {
  return subject === null && type !== TURN_ENDED
}

function mayAddFacts({ facts, readings, newCalls, calls, owners: notes }: Batch): boolean {
  if (calls?.some((step) => step.facts !== undefined) === true) return true
  return [facts, readings, newCalls, notes].some((given) => given !== undefined)
}
