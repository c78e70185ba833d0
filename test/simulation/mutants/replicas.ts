import { several, tested, type Mutant } from './mutant.ts'

const MEMBERSHIP = 'sidecar/store/membership.ts'

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
    'for (const id of dead) await table.fence(id).catch(() => undefined)',
    '',
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
    "return !this.#ports.store.shards.owns(session === '' ? null : session)",
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
]
