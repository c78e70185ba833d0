import { mutant, tested, type Mutant } from './mutant.ts'

/** Bugs in reading sessions and comparing. */
export const READINGS: readonly Mutant[] = [
  mutant(
    'a hint that came while we read is lost',
    'sidecar/store/sqlite/hints.ts',
    'WHERE session_id = ? AND generation = ?',
    'WHERE session_id = ? AND ? >= 0',
  ),
  mutant(
    'what came while we read waits for a day',
    'sidecar/store/sqlite/hints.ts',
    'UPDATE hints SET due_at = @due_at, scope',
    'UPDATE hints SET due_at = @due_at + 90000000, scope',
  ),
  mutant(
    'a failed reading is not tried again',
    'sidecar/store/sqlite/hints.ts',
    'UPDATE hints SET due_at = ?, failures = failures + 1 WHERE session_id = ?',
    'UPDATE hints SET due_at = ? + 90000000, failures = failures + 1 WHERE session_id = ?',
  ),
  mutant(
    'a claimed hint is not given back',
    'sidecar/intake/reconcile.ts',
    'if (await reader.read(entry, sessionId, listed)) await store.hints.release(entry)',
    'await reader.read(entry, sessionId, listed)',
  ),
  mutant(
    'turn.ended is believed',
    'core/resource.ts',
    "if (turn.status === 'working') return false",
    "if (turn.status === 'working') return 'artifacts' in turn && turn.completedAt === null && Math.abs(String(turn.status).length) > 6 && (turn as { startedAt?: number }).startedAt !== undefined",
  ),
  mutant(
    'pending artifacts count as final',
    'core/resource.ts',
    "new Set(['ready', 'partial', 'failed'])",
    "new Set(['ready', 'partial', 'failed', 'pending'])",
  ),
  mutant(
    'any final turn is completed',
    'sidecar/intake/diff.ts',
    "return turn.status === 'failed' ? 'turn.failed' : 'turn.ended'",
    "return 'turn.completed'",
  ),
  mutant(
    'the fourth status is no end',
    'core/resource.ts',
    'return turn.completedAt !== null || turn.artifacts !== null',
    'return false',
  ),
  mutant(
    'artifacts are not looked at again',
    'sidecar/intake/schedule.ts',
    'lookAfter: looks.length === 0 ?',
    'lookAfter: looks.length >= 0 ?',
  ),
  mutant(
    'deleted sessions are not noticed',
    'sidecar/intake/sweep.ts',
    "        await eachUnlisted(listed, aliveAfter, hintAt({ channel, at, scope: 'session' }))\n",
    '',
  ),
  mutant(
    'what went on while the turns were read is not read again',
    'sidecar/intake/snapshot.ts',
    'if (attempt === REREAD || agree(',
    'if (attempt >= 0 || agree(',
  ),
  mutant(
    'the oldest turn is reported last',
    'sidecar/intake/diff.ts',
    'read.toReversed().sort(byAge)',
    'read',
  ),
  mutant(
    'an answered action is not resolved',
    'sidecar/intake/diff.ts',
    'const resolved = [...knownActions.filter(({ callId }) => !open.has(callId)),',
    'const resolved = [...knownActions.filter(({ callId }) => !open.has(callId) && open.size > 0),',
  ),
  mutant(
    'the items checkpoint moves before the facts',
    'sidecar/intake/snapshot.ts',
    '      const { stale } = await intake.commit({\n        facts: data',
    '      await store.settings.setCheckpoint(name, newest)\n      after = newest\n      const { stale } = await intake.commit({\n        facts: data',
  ),
  mutant(
    'the first page is the whole list of items',
    'sidecar/intake/snapshot.ts',
    "      else if (!hasMore) return 'all'\n      else after = newest",
    "      else return 'all'",
  ),
  mutant(
    'the first page is the whole list of turns',
    'sidecar/intake/snapshot.ts',
    'if (!hasMore || lastId === null || lastId === after) return turns',
    'if (page >= 0) return turns',
  ),
  mutant(
    'the first page is the whole list of sessions',
    'sidecar/intake/sweep.ts',
    'if (!hasMore || lastId === null || lastId === after) return ids',
    'return ids',
  ),
  // Readings ahead of their hint
  mutant(
    'a reading ahead answers hints that came after it began',
    'sidecar/intake/snapshot.ts',
    'for (const { sessionId } of hints) if (sessionId !== null) readings.delete(sessionId)',
    'for (const { sessionId } of hints) if (sessionId !== null && readings.has(sessionId)) return',
  ),
  {
    // A later hint drops it: taking it twice alone is harmless.
    name: 'a reading ahead answers twice',
    edits: [
      [
        'sidecar/intake/snapshot.ts',
        'for (const { sessionId } of hints) if (sessionId !== null) readings.delete(sessionId)',
        'for (const { sessionId } of hints) if (sessionId !== null && readings.has(sessionId)) return',
      ],
      [
        'sidecar/intake/snapshot.ts',
        '      readings.delete(sessionId)\n      reading.taken = true\n',
        '      reading.taken = true\n',
      ],
    ],
  },
  mutant(
    'a reading that failed is tried again at once when the store cannot note that',
    'sidecar/intake/reconcile.ts',
    '      return rest.refused(cause)',
    '      return',
  ),
  mutant(
    'the queue is asked also where nothing more can be taken',
    'sidecar/intake/reconcile.ts',
    'return room() <= 0 ? null : await store.hints.nextDue(leftOut())',
    'return await store.hints.nextDue(leftOut())',
  ),
  mutant(
    'a call that was accepted before its session was stored is not looked for',
    'sidecar/intake/snapshot.ts',
    '      if (over.length > 0)\n        bus.report',
    '      if (over.length > found.size)\n        bus.report',
  ),
  mutant(
    'one read that hangs holds up the reads of all other sessions',
    'sidecar/intake/reconcile.ts',
    'const readers = new PQueue({ concurrency: READERS })',
    'const readers = new PQueue({ concurrency: 1 })',
  ),
  tested(
    { file: 'intake/snapshot.test.ts', only: 'an action that came and went during a read that waits' },
    'a read that waits for the frame of a turn forgets an action that came and went',
    'sidecar/intake/schedule.ts',
    'if (passed.length > 0) this.#passed.set',
    'if (passed.length > 99) this.#passed.set',
  ),
]
