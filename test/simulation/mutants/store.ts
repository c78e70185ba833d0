import { mutant, tested, type Mutant } from './mutant.ts'

/** Bugs in the store and the one door. */
export const STORE: readonly Mutant[] = [
  {
    name: 'look-then-insert dedupe',
    edits: [
      [
        'sidecar/store/sqlite/migrations/0001.sql',
        'id           TEXT NOT NULL UNIQUE',
        'id           TEXT NOT NULL',
      ],
      ['sidecar/store/sqlite/log.ts', ' ON CONFLICT (id) DO NOTHING', ''],
      [
        'sidecar/intake/commit.ts',
        'const committed = await store.log.commit(filter.active ? { ...batch, scoped: true } : batch, patience)',
        `const committed = await Promise.all((batch.facts ?? []).map(async (fact) => ((await store.read.facts({ limit: 1000, order: 'desc', sessionId: fact.sessionId ?? undefined })).rows.some(({ id }) => id === fact.id) ? [] : [fact])))
      .then((looked) => store.log.commit({ ...batch, scoped: filter.active, facts: looked.flat() }, patience))`,
      ],
    ],
  },
  mutant(
    'the cursor is committed without its facts',
    'sidecar/store/sqlite/store.ts',
    '      facts.append(batch.facts, into)\n',
    '      if (batch.cursor === undefined || batch.facts.length < 2) facts.append(batch.facts, into)\n',
  ),
  mutant(
    'checkpoint first',
    'sidecar/source/stream.ts',
    '    const made = batchOf(batch)\n',
    '    const made = batchOf(batch)\n    if (made.cursor !== undefined) await store.settings.setCheckpoint("stream", made.cursor)\n',
  ),
  mutant(
    'the cursor may move back',
    'sidecar/store/sqlite/store.ts',
    'if (known === null || given === null || given > known) checkpoints.set(name, value)',
    'checkpoints.set(name, value)',
  ),
  // The result of a write is known once it has run; the transaction in which it stays comes later.
  mutant(
    'a write settles before it is on disk',
    'sidecar/store/sqlite/committer.ts',
    '      const write: Write = {\n',
    `      if (urgency === 'now' && !this.#db.inTransaction) {
        this.#begin.run()
        try {
          resolve(run())
        } catch {
          // The transaction to come refuses it, too.
        } finally {
          if (this.#db.inTransaction) this.#rollback.run()
        }
      }
      const write: Write = {\n`,
  ),
  // The others are tried again by their callers.
  tested(
    { file: 'store/commit.test.ts', only: 'is invalid does not fail the others' },
    'a failed batch takes the others with it',
    'sidecar/store/sqlite/committer.ts',
    'else for (const write of writes) this.#alone(write)',
    'else for (const write of writes) write.failed(error)',
  ),
  mutant(
    'facts have an id of their own each time',
    'core/fact.ts',
    'export function stateFactId(type: string, ...key: (string | number)[]): string {\n',
    'let made = 0\nexport function stateFactId(type: string, ...key: (string | number)[]): string {\n  key.push(made++)\n',
  ),
  mutant(
    'state ids forget their session',
    'sidecar/intake/diff.ts',
    'id: stateFactId(type, ...key)',
    "id: stateFactId(type, ...key.slice(1), type === 'session.created' ? '' : key[0] ?? '')",
  ),
  mutant(
    'a delivery less for a handler',
    'sidecar/store/sqlite/lanes.ts',
    'else list.push(fact)',
    'else if (list.length < 3) list.push(fact)',
  ),
  mutant(
    'a delivery that stays pending gets no row',
    'sidecar/store/sqlite/lanes.ts',
    '    this.#write.run(pos)\n',
    '',
  ),
  mutant(
    'a fact does not say who selected it',
    'sidecar/store/sqlite/lanes.ts',
    'bits |= bit',
    'bits &= bit',
  ),
  mutant(
    'a delivery without a row is not read',
    'sidecar/store/sqlite/lanes.ts',
    'if (left === 0 || handler === null || handler.bit === 0) return',
    'if (left < Infinity || handler === null) return',
  ),
  mutant(
    'steady time is not carried over',
    'sidecar/store/sqlite/committer.ts',
    'if (back > 0)',
    'if (back > 1e15)',
  ),
  mutant(
    'a checkpoint is set once and never again',
    'sidecar/store/sqlite/log.ts',
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value',",
    "ON CONFLICT (name) DO NOTHING',",
  ),
  mutant(
    'a commit does not check the epoch',
    'sidecar/store/sqlite/committer.ts',
    'if (this.#commit.run(epoch, owner).changes !== 1) throw this.lose(this.#fenced())',
    'this.#commit.run(epoch, owner)',
  ),
  tested(
    { file: 'store/lease.test.ts', only: 'of a lane is acknowledged by the next owner only' },
    'an ack of a former owner is accepted',
    'sidecar/store/sqlite/lanes.ts',
    'if (number === null || !this.#ownership.holds(lane.lease)) continue',
    'if (number === null) continue',
  ),
  tested(
    { file: 'store/lease.test.ts', only: 'of a call is continued by the next owner only' },
    'a step of a former owner is accepted',
    'sidecar/store/sqlite/calls.ts',
    '    if (lease !== undefined && !this.#ownership.holds(lease)) return false\n',
    '',
  ),
  tested(
    { file: 'store/lease.test.ts', only: 'the snapshot of the former is not stored' },
    'a reading of a former owner is accepted',
    'sidecar/store/sqlite/store.ts',
    'const written = isHeld ? sessions.write(reading) : null',
    'const written = sessions.write(reading)',
  ),
  mutant(
    'a start does not fence the former owner',
    'sidecar/store/sqlite/committer.ts',
    'owner = excluded.owner, previous = owner, epoch = epoch + 1, commits = commits + 1',
    "owner = CASE owner WHEN '' THEN excluded.owner ELSE owner END, commits = commits + 1",
  ),
  mutant(
    'a fenced process logs it and writes on',
    'sidecar/store/sqlite/committer.ts',
    '.changes !== 1) throw this.lose(this.#fenced())',
    '.changes !== 1) this.lose(this.#fenced())',
  ),
  mutant(
    'a fenced process acknowledges webhooks',
    'sidecar/source/webhook.ts',
    'for (const delivery of deliveries) settle(delivery, false)',
    "for (const delivery of deliveries) settle(delivery, (error as { kind?: string }).kind === 'fenced')",
  ),
  tested(
    { file: 'store/lanes.test.ts', only: 'whether facts are pending behind those that are read .SQLite.' },
    'a page of a lane counts as its end',
    'sidecar/store/sqlite/lanes.ts',
    'complete: left > 0',
    'complete: left >= 0',
  ),
]
