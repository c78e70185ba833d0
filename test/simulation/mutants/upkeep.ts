import { mutant, type Mutant } from './mutant.ts'

/** Bugs in what goes, and in what is delivered once more. */
export const UPKEEP: readonly Mutant[] = [
  mutant(
    'pruning takes what is pending',
    'sidecar/store/sqlite/prune.ts',
    'if (pending === 1 || at >= before) continue',
    'if (at >= before) continue',
  ),
  mutant(
    'pruning takes what is young',
    'sidecar/store/sqlite/prune.ts',
    'const old = oldOf(looked, before, now)',
    'before = now\n    const old = looked',
  ),
  mutant(
    'pruning forgets which seqs went',
    'sidecar/store/sqlite/prune.ts',
    '    if (facts > 0) checkpoints.set(PRUNED_SEQ, String(highest))\n',
    '',
  ),
  {
    name: 'pruning takes a lane with pending deliveries',
    edits: [
      ['sidecar/store/sqlite/prune.ts', 'if (pending === 0 && !lanes.isClaimed(id))', 'if (pending < 9)'],
      [
        'sidecar/store/sqlite/prune.ts',
        "'DELETE FROM lanes WHERE id = ? AND pending = 0'",
        "'DELETE FROM lanes WHERE id = ?'",
      ],
    ],
  },
  mutant(
    'pruning takes sessions that live',
    'sidecar/store/sqlite/prune.ts',
    "'SELECT id FROM sessions WHERE deleted_at < ? LIMIT 1'",
    "'SELECT id FROM sessions WHERE read_at < ? LIMIT 1'",
  ),
  mutant(
    'pruning forgets a call whose session is still to be read',
    'sidecar/store/sqlite/prune.ts',
    '       AND NOT EXISTS (SELECT 1 FROM hints WHERE hints.session_id = calls.session_id)',
    '',
  ),
  mutant(
    'items are reported again by a read that hung',
    'sidecar/intake/snapshot.ts',
    'checkpoint: { name, from: after, to: newest },',
    'checkpoint: { name, to: newest },',
  ),
  mutant(
    'a reading that hung takes back the end of a turn',
    'sidecar/intake/diff.ts',
    'if (old?.read === true && old.final && !final)',
    'if (old?.settled === true)',
  ),
  mutant(
    'what the first look still reads is forgotten',
    'sidecar/maintain.ts',
    'mayPrune() ?',
    'mayPrune !== undefined ?',
  ),
  mutant(
    'pruning goes on after the stop',
    'sidecar/maintain.ts',
    '      running = false\n      timer?.cancel()\n',
    '      running = false\n',
  ),
  mutant(
    'a replay counts what is pending as one more',
    'sidecar/store/sqlite/redelivery.ts',
    'if (row?.status === 0) return false',
    'if (row?.status === 7) return false',
  ),
  mutant(
    'what is delivered again is not counted in its lane',
    'sidecar/store/sqlite/redelivery.ts',
    "'UPDATE lanes SET pending = pending + 1, due_at = 0 WHERE id = ?'",
    "'UPDATE lanes SET due_at = 0 WHERE id = ?'",
  ),
  mutant(
    'a redelivered fact goes to a lane that was removed',
    'sidecar/store/sqlite/redelivery.ts',
    'const id = grow.run(lane).changes === 1 ? lane : extend(handler, fact_pos)',
    'const id = grow.run(lane).changes === 1 ? lane : lane',
  ),
  mutant(
    'dead letters come back with their attempts used up',
    'sidecar/store/sqlite/redelivery.ts',
    'SET status = 0, attempts = 0, cut = 0, lane',
    'SET status = 0, cut = 0, lane',
  ),
  mutant(
    'a handler that is paused is asked again after a reset',
    'sidecar/deliver/lane-runner.ts',
    "      this.#keeper.health.state !== 'paused' &&\n",
    '',
  ),
  mutant(
    'a handler that an operator pauses goes on',
    'sidecar/actions.ts',
    '      engine.dispatcher.worker(name)?.pause(since)\n',
    '',
  ),
]
