import { mutant, tested, type Mutant } from './mutant.ts'

/** Bugs in the separation of our sessions from those of other sidecars. */
export const SCOPE: readonly Mutant[] = [
  mutant(
    'held frames are dropped when their session is ours',
    'sidecar/store/sqlite/session-owners.ts',
    'if (facts.length > 0) this.#dropHeld.run(sessionId)\n    return facts',
    'if (facts.length > 0) this.#dropHeld.run(sessionId)\n    return []',
  ),
  // One seed in some 2,000 shows it.
  tested(
    { file: 'intake/ownership.test.ts', only: 'pruned meanwhile' },
    'held frames count as pruned once later ones are',
    'sidecar/store/sqlite/session-owners.ts',
    'facts.release(released, into)',
    'facts.append(released, into)',
  ),
  mutant(
    'the checkpoint passes frames of an unknown session, which are not stored',
    'sidecar/store/sqlite/session-owners.ts',
    '    for (const fact of sifted.held)\n      this.#hold.run(fact.sessionId, fact.id, fact.body.length, JSON.stringify(fact))\n',
    '',
  ),
  mutant(
    'frames of an unknown session are facts at once',
    'sidecar/store/sqlite/session-owners.ts',
    "if (row?.owner === 'ours') return true",
    "if (row === undefined || row.owner === 'ours') return true",
  ),
  mutant(
    'held frames are released the last first',
    'sidecar/store/sqlite/session-owners.ts',
    'WHERE session_id = ? ORDER BY pos',
    'WHERE session_id = ? ORDER BY pos DESC',
  ),
  mutant(
    'calls are taken on before it is known whose their session is',
    'sidecar/intake/reconcile.ts',
    '    if (ownership.filter.active && !(await admit(first, noted))) return true\n',
    '',
  ),
  mutant(
    'a hint makes a session ours',
    'sidecar/store/sqlite/session-owners.ts',
    'hints.ensure(sessionId, clock.now(), clock.steady())',
    "note({ sessionId, owner: 'ours', at: clock.now() }, into)",
  ),
  {
    name: 'a foreign session is read at each hint',
    edits: [
      [
        'sidecar/store/sqlite/session-owners.ts',
        'hints: hints.filter(({ sessionId }) => sessionId === null || !isLeftOut(sessionId)),',
        'hints: [...hints],',
      ],
      ['sidecar/intake/reconcile.ts', '    if (noted !== null && isOthers(noted)) return true\n', ''],
    ],
  },
  mutant(
    'a foreign session is read before its hint is stored',
    'sidecar/intake/ownership.ts',
    "certain: possible.filter((hint) => ownerOf(hint) === 'ours') }",
    'certain: [...hints] }',
  ),
  mutant(
    'transient events of an unknown session are passed on',
    'sidecar/intake/ownership.ts',
    '    if (owner === undefined) return\n',
    '    if (owner === undefined) return bus.report((to) => to.transient?.(event))\n',
  ),
  mutant(
    'who created a session does not matter',
    'core/scope.ts',
    "if (createdByToken.length > 0 && !createdByToken.includes(session.createdByToken ?? '')) return false",
    '',
  ),
  mutant(
    'one pair of metadata is enough',
    'core/scope.ts',
    'return Object.entries(metadata).every(',
    'return Object.keys(metadata).length === 0 || Object.entries(metadata).some(',
  ),
  mutant(
    'a session that left the scope is followed on',
    'sidecar/store/sqlite/session-owners.ts',
    '    sessions.leave(sessionId, at)\n',
    '',
  ),
  mutant(
    'a session that came into the scope stays foreign',
    'sidecar/intake/ownership.ts',
    "if (owner === 'foreign' || owner === 'gone')\n            notes.push",
    "if (owner === 'foreign') return false\n          if (owner === 'gone')\n            notes.push",
  ),
  mutant(
    'facts before a session came into the scope are delivered after it',
    'sidecar/store/sqlite/session-owners.ts',
    'if (boundary === null || number === null || number > boundary) return false',
    'if (boundary === null || number === null || number >= 0n) return false',
  ),
  mutant(
    'frames of a session that is gone are held for ever',
    'sidecar/intake/reconcile.ts',
    "      await ownership.note(sessionId, 'gone')\n      return true\n",
    '',
  ),
]
