import { several, tested, type Mutant } from './mutant.ts'

const MEMBERSHIP = 'sidecar/store/membership.ts'
const OWNERSHIP = 'sidecar/store/postgres/ownership.ts'
const DATABASE = 'sidecar/store/postgres/database.ts'
const FENCE = 'sidecar/store/postgres/migrations/0008.sql'
const TAKEOVER = 'sidecar/store/postgres/migrations/0010.sql'

/** Mistakes of others with leases, and those of parts that were written for one process. */
export const REPLICAS: readonly Mutant[] = [
  several('leases are renewed when they end', MEMBERSHIP, 'const RENEWED = 5000', 'const RENEWED = 15_000'),
  several(
    'a process that may not read any more goes on',
    MEMBERSHIP,
    'this.#parts.clock.steady() <= this.#asked + LEASE - MARGIN',
    'this.#asked > 0',
  ),
  several(
    'a process that died is not taken over',
    MEMBERSHIP,
    'for (const [id, renewal] of dead) await table.fence(id, renewal).catch(() => undefined)',
    '',
  ),
  several(
    'a process is dead when its leases have ended by the clock of the database, which was set forward',
    MEMBERSHIP,
    'if (ms > LEASE || (isOver && ms >= SILENT))',
    'if (isOver)',
  ),
  several(
    'a process that was killed lives for an hour, because the clock of the database was set back',
    MEMBERSHIP,
    'if (ms > LEASE || (isOver && ms >= SILENT))',
    'if (isOver && ms >= SILENT)',
  ),
  several(
    'after an outage of the database, the first process that is back fences the others',
    MEMBERSHIP,
    'const passed = Math.min(now - this.#surveyedAt, HEARD)',
    'const passed = now - this.#surveyedAt',
  ),
  tested(
    { file: 'deliver/worker.test.ts', only: 'where its id is, not at the leader' },
    'a fact without a session is the leader’s, though its lane is claimed by its own shard',
    'sidecar/deliver/lane-runner.ts',
    'const place = fact?.sessionId ?? key',
    "const place = fact?.sessionId ?? ''",
  ),
  several(
    'a wait that the service asked for reaches one process',
    'sidecar/holds.ts',
    "if (topics.has('waits'))",
    "if (topics.has('waits') && topics.size > 99)",
  ),
  tested(
    { file: 'replicas/holds.test.ts', only: 'heeds that before its first request' },
    'a process that starts does not know of a wait',
    'sidecar/holds.ts',
    'return () => exchange().catch(failed)',
    'return () => Promise.resolve()',
  ),
  several(
    'a shard is handed over while work of it is in flight',
    MEMBERSHIP,
    'const idle = [...this.#draining.keys()].filter((shard) => this.#parts.claimed(shard) === 0)',
    'const idle = [...this.#draining.keys()]',
  ),
  several(
    'what others wrote is only looked at after a wake',
    MEMBERSHIP,
    '    if (gone.length > 0 || [...noted].some(([id, last]) => before.get(id) !== last))\n      this.report((to) => to.woken?.(OTHERS))\n',
    '',
  ),
  several(
    'a pause reaches one process',
    'sidecar/deliver/dispatcher.ts',
    "if (topics.has('handlers'))",
    "if (topics.has('handlers') && workers.length === 0)",
  ),
  several(
    'each process reads the stream',
    'sidecar/engine.ts',
    '      if (leads) stream?.start()\n',
    '      stream?.start()\n',
  ),
  several(
    'a follower that leads now does not read the stream',
    'sidecar/engine.ts',
    "    if (phase !== 'leading') return\n    stream?.start()\n",
    "    if (phase !== 'leading') return\n",
  ),
  several(
    'a former owner posts an answer that waited',
    'sidecar/tools/ledger.ts',
    'maySend: () => store.shards.owns(sessionId)',
    'maySend: () => true',
  ),
  several(
    'a former owner sends what is left of a lane',
    'sidecar/deliver/lane-runner.ts',
    "return !this.#ports.store.shards.owns(place === '' ? null : place)",
    'return false',
  ),
  tested(
    { file: 'store/postgres.test.ts', only: 'the lanes are looked at, and have it' },
    'what a commit stored that had failed for its caller is not looked for',
    'sidecar/store/membership.ts',
    '    this.report((to) => to.missed?.())\n    this.#wake()\n',
    '    this.report((to) => to.missed?.())\n',
  ),
  tested(
    { file: 'store/replicas.test.ts', only: 'adds frames to lanes while their owner' },
    'a process that postpones several lanes waits for frames of the leader, which wait for it',
    'sidecar/store/postgres/committer.ts',
    "kind === 'lane').length > 1",
    "kind === 'lane').length > 999",
  ),
  tested(
    { file: 'store/postgres.test.ts', only: 'fails once a minute' },
    'while deliveries are replayed, each transaction fails once',
    'sidecar/store/postgres/committer.ts',
    'this.#clock.steady() + CAUTIOUS',
    'this.#clock.steady()',
  ),
  tested(
    { file: 'store/prune.test.ts', only: 'a full replay brings back' },
    'frames that were removed long ago are added again',
    'sidecar/store/postgres/log.ts',
    '${GIVEN}) f WHERE $16::numeric > ${PRUNED})',
    '${GIVEN}) f)',
  ),
  // Mistakes that other projects made with PostgreSQL. Others cannot be made here: leases have no ON CONFLICT, and no statement
  // locks for its session, claims by SKIP LOCKED or notifies within a transaction (store/statements.test.ts). PgBouncer passes
  // pipelined statements on.
  tested(
    { file: 'store/statements.test.ts', only: 'arrives as a number' },
    'int8 arrives as a text',
    DATABASE,
    'if (oid === INT8) return numberOfInt8',
    'if (oid === INT8) return original',
  ),
  {
    name: 'an epoch is given again when its process has left',
    edits: [
      [OWNERSHIP, "epoch = nextval('sidecar.epochs')", 'epoch = epoch + 1'],
      [
        FENCE,
        'UPDATE sidecar.leases SET owner = NULL WHERE owner = me',
        'UPDATE sidecar.leases SET owner = NULL, epoch = 0 WHERE owner = me',
      ],
    ],
    test: { file: 'store/replicas.test.ts', only: 'never gives an epoch again' },
  },
  tested(
    { file: 'store/replicas.test.ts', only: 'lock and check do not share a snapshot' },
    'the fence is checked in the snapshot from before the wait for its lock',
    'sidecar/store/postgres/migrations/0009.sql',
    'last < commit_number AND NOT fenced;',
    'last < commit_number AND NOT EXISTS (SELECT 1 FROM sidecar.commits WHERE replica = me AND fenced);',
  ),
  tested(
    { file: 'store/replicas.test.ts', only: 'finds that it is fenced by its next renewal' },
    'a heartbeat renews the leases of a process that is fenced',
    OWNERSHIP,
    'WHERE id = $1 AND NOT fenced RETURNING floor',
    'WHERE id = $1 RETURNING floor',
  ),
  {
    name: 'a takeover does not wait for the write that is under way',
    edits: [
      [FENCE, 'UPDATE sidecar.commits SET fenced = NEW.fenced WHERE replica = NEW.id;', 'NULL;'],
      [TAKEOVER, "PERFORM pg_advisory_xact_lock(hashtextextended('session-sidecar ' || dead, 7));", 'NULL;'],
      [TAKEOVER, 'PERFORM 1 FROM sidecar.commits WHERE replica = dead FOR UPDATE;', 'NULL;'],
    ],
    test: { file: 'store/replicas.test.ts', only: 'waits for the write of the former owner' },
  },
  tested(
    { file: 'store/replicas.test.ts', only: 'renewed meanwhile' },
    'a process that renewed its leases while a takeover waited is fenced',
    TAKEOVER,
    'AND NOT fenced AND extract(epoch FROM seen) = renewal;',
    'AND NOT fenced;',
  ),
  tested(
    { file: 'store/replicas.test.ts', only: 'a connection that is half open' },
    'a half-open connection for notifications is kept',
    'sidecar/store/postgres/wakes.ts',
    'void connection.ended.then(() => this.#reopen(connection))\n      this.#timer = clock.after(CHECKED, () => void this.#check(connection))',
    'void connection.ended.then(() => this.#reopen(connection))',
  ),
  tested(
    { file: 'store/replicas.test.ts', only: 'excludes all others that do' },
    'two processes add facts at once, and a position becomes visible late',
    'sidecar/store/postgres/migrations/0009.sql',
    "IF excludes = 'lanes' THEN\n    locked := pg_advisory_xact_lock(",
    "IF excludes = 'lanes' THEN\n    locked := pg_advisory_xact_lock_shared(",
  ),
  tested(
    { file: 'store/replicas.test.ts', only: 'hints of the same sessions never wait' },
    'two processes write hints in different orders at once, and wait for each other',
    'sidecar/store/postgres/hints.ts',
    'SELECT pg_advisory_xact_lock($1::bigint)',
    'SELECT pg_advisory_xact_lock_shared($1::bigint)',
  ),
  tested(
    { file: 'store/postgres.test.ts', only: 'answers with ROLLBACK is no commit' },
    'a COMMIT that answers ROLLBACK counts as one',
    DATABASE,
    "if (answer.command !== 'COMMIT') throw new StoreError('unreachable', new RolledBack())",
    "if (answer.command === '') throw new StoreError('unreachable', new RolledBack())",
  ),
  tested(
    { file: 'store/postgres.test.ts', only: 'the old primary is a standby' },
    'a standby is taken for the primary',
    DATABASE,
    'result.rows[0]?.standby === false ? undefined : new StandbyError()',
    'result.rows.length > 0 ? undefined : new StandbyError()',
  ),
  tested(
    { file: 'store/postgres.test.ts', only: 'logs that idle connections broke' },
    'an idle connection that breaks ends the process',
    DATABASE,
    "    pool.on('error', (error) => onError(error))\n",
    '',
  ),
  tested(
    { file: 'store/postgres.test.ts', only: 'keys in their order' },
    'the body of a fact is JSONB',
    'sidecar/store/postgres/migrations/0001.sql',
    '  body         text NOT NULL,',
    '  body         jsonb NOT NULL,',
  ),
  tested(
    { file: 'store/replicas.test.ts', only: 'the role does not wait' },
    'a commit is reported before it is on disk, because its role does not wait for that',
    DATABASE,
    "const lasting = pooled ? '' : ",
    "const lasting = pooled || address.url !== '' ? '' : ",
  ),
  tested(
    { file: 'store/replicas.test.ts', only: 'wait until the frames before them' },
    'a transient event reaches another process before the frames that came first',
    'sidecar/store/postgres/wakes.ts',
    'isBefore(this.#cursor, after))',
    'isBefore(after, this.#cursor))',
  ),
  tested(
    { file: 'admin/relay.test.ts', only: 'behind the stored frames before it' },
    'a reader gets a transient frame of another process before the frames that came first',
    'sidecar/admin/relay/relay.ts',
    'void others.look().then(order.release)',
    'order.release()',
  ),
  tested(
    { file: 'admin/relay-hub.test.ts', only: 'stay in their order while the frame' },
    'a transient frame passes one that waits for the log',
    'sidecar/admin/relay/order.ts',
    '        if (held.length > 0) release((after) => !isBefore(seq, after))\n',
    '',
  ),
  tested(
    { file: 'admin/relay-hub.test.ts', only: 'late transient frame of another process' },
    'a reader gets text behind the message that has it',
    'sidecar/admin/relay/order.ts',
    "if (last === undefined || !isBefore(event.after ?? '', last)) transient(event)",
    'transient(event)',
  ),
]
