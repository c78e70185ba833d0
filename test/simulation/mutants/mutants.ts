/** In `file` below src, `find` becomes `put`. `find` must be there exactly once. */
export type Edit = readonly [file: string, find: string, put: string]

/** A planted bug. */
export interface Mutant {
  name: string
  edits: readonly Edit[]
}

const mutant = (name: string, ...edit: Edit): Mutant => ({ name, edits: [edit] })

/** Bugs that somebody might well make. The simulation must see each of them. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'look-then-insert dedupe',
    edits: [
      ['store/sqlite/migrations/0001.sql', 'id           TEXT NOT NULL UNIQUE', 'id           TEXT NOT NULL'],
      ['store/sqlite/log.ts', ' ON CONFLICT (id) DO NOTHING', ''],
      [
        'intake/intake.ts',
        'const committed = await store.commit(batch)',
        `const looked = await Promise.all((batch.facts ?? []).map(async (fact) => ((await store.read.fact(fact.id)) === null ? [fact] : [])))
    const committed = await store.commit({ ...batch, facts: looked.flat() })`,
      ],
    ],
  },
  // The store and the one door
  mutant(
    'the cursor is committed without its facts',
    'store/sqlite/store.ts',
    'if (batch.facts !== undefined) facts.append(batch.facts, into)',
    'if (batch.facts !== undefined && (batch.cursor === undefined || batch.facts.length < 2)) facts.append(batch.facts, into)',
  ),
  mutant(
    'checkpoint first',
    'source/stream.ts',
    '    await commit(made)\n',
    '    if (made.cursor !== undefined) await store.setCheckpoint(STREAM_CURSOR, made.cursor)\n    await commit(made)\n',
  ),
  mutant(
    'the cursor may move back',
    'store/sqlite/store.ts',
    'if (known === null || given === null || given > known) checkpoints.set(name, value)',
    'checkpoints.set(name, value)',
  ),
  mutant(
    'a write settles before it is on disk',
    'store/sqlite/committer.ts',
    '      this.#schedule()\n    })',
    '      resolve(undefined as T)\n      this.#schedule()\n    })',
  ),
  mutant(
    'a failed batch takes the others with it',
    'store/sqlite/committer.ts',
    'else for (const write of writes) this.#alone(write)',
    'else for (const write of writes) write.committed(undefined)',
  ),
  mutant(
    'facts have an id of their own each time',
    'core/fact.ts',
    'digest([type, ...key].join',
    'digest([type, String(counter++), ...key].join',
  ),
  mutant(
    'state ids forget their session',
    'intake/facts.ts',
    'id: stateFactId(type, ...key)',
    "id: stateFactId(type, ...key.slice(1), type === 'session.created' ? '' : key[0] ?? '')",
  ),
  mutant(
    'a delivery less for a handler',
    'store/sqlite/lanes.ts',
    'else list.push(fact)',
    'else if (list.length < 3) list.push(fact)',
  ),
  mutant('steady time is not carried over', 'store/sqlite/time.ts', 'if (back > 0)', 'if (back > 1e15)'),
  // Readings
  mutant(
    'a hint that came while we read is lost',
    'store/sqlite/hints.ts',
    'WHERE session_id = ? AND generation = ?',
    'WHERE session_id = ? AND ? >= 0',
  ),
  mutant(
    'a failed reading is not tried again',
    'store/sqlite/hints.ts',
    'UPDATE hints SET due_at = ?, failures = failures + 1 WHERE session_id = ?',
    'UPDATE hints SET due_at = ? + 90000000, failures = failures + 1 WHERE session_id = ?',
  ),
  mutant(
    'a claimed hint is not given back',
    'intake/reconcile.ts',
    '        store.doneHint(sessionId)\n      }',
    '      }',
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
    'intake/facts.ts',
    "return turn.status === 'failed' ? 'turn.failed' : 'turn.ended'",
    "return 'turn.completed'",
  ),
  mutant(
    'the fourth status is no end',
    'core/resource.ts',
    'return turn.completedAt !== null',
    'return false',
  ),
  mutant(
    'artifacts are not looked at again',
    'intake/read.ts',
    'if (collecting.length === 0) return atRest ? null : steady + SAFETY_LOOK',
    'if (collecting.length >= 0) return atRest ? null : null',
  ),
  mutant(
    'deleted sessions are not noticed',
    'intake/sweep.ts',
    'if (listed !== null) await findGone(listed, channel, at)',
    '',
  ),
  mutant(
    'what went on while the turns were read is not read again',
    'intake/read.ts',
    'if (agrees || attempt === REREAD) return',
    'if (agrees || attempt >= 0) return',
  ),
  mutant('the oldest turn is told last', 'intake/diff.ts', 'read.toReversed().sort(byAge)', 'read'),
  mutant(
    'an answered action is not resolved',
    'intake/diff.ts',
    'const resolved = knownActions.filter(({ callId }) => !open.has(callId))',
    'const resolved = knownActions.filter(({ callId }) => !open.has(callId) && open.size > 0)',
  ),
  mutant(
    'the items checkpoint moves before the facts',
    'intake/items.ts',
    '        await intake.commit({\n          facts: data',
    '        await store.setCheckpoint(name, newest.id)\n        await intake.commit({\n          facts: data',
  ),
  // Channels
  mutant(
    'acknowledge first',
    'source/webhook.ts',
    '    try {\n      await stored\n',
    "    stored.catch(() => undefined)\n    if (readable) return answer(200, 'accepted')\n    try {\n      await stored\n",
  ),
  mutant(
    'webhook hints are dropped',
    'source/webhook.ts',
    'const stored = options.storeHint(hint)',
    'const stored = Promise.resolve()',
  ),
  mutant(
    'a stop frame ends the stream for good',
    'source/stream.ts',
    "return { reason: 'replay_stop', error: null, wait: moved ? 0 : Math.max(FAILURE.base, floor()) }",
    "return { reason: 'replay_stop', error: null, wait: 1e9 }",
  ),
  mutant(
    'half-open connections live for ever',
    'source/drain.ts',
    'if (clock.steady() - lastByte < SILENCE) return',
    'if (clock.steady() - lastByte >= 0) return',
  ),
  mutant(
    'after a failed write the rest of the batch is written',
    'source/drain.ts',
    'if (!disk.failed) await write()',
    'await write()',
  ),
  mutant(
    'the stream starts at live frames after a crash',
    'source/stream.ts',
    'if (saved !== null) return saved\n',
    'if (saved !== null) return null\n',
  ),
  mutant(
    'an inactive subscription is left',
    'source/subscription.ts',
    'active && known.get(id)?.retiredAt === null',
    'active || known.get(id)?.retiredAt === null',
  ),
  // Callbacks
  mutant(
    'delivered before it is sent',
    'deliver/worker.ts',
    '    const at = clock.now()\n    const started = clock.steady()\n    const outgoing',
    "    const at = clock.now()\n    const started = clock.steady()\n    recorder.settle(active, batch, 'delivered', { at, ms: 0, status: 200 })\n    const outgoing",
  ),
  mutant(
    'an error of the handler counts as delivered',
    'deliver/verdict.ts',
    'if (status >= 200 && status < 300) return verdictOf',
    'if (status >= 200 && status < 600 && status !== 410) return verdictOf',
  ),
  mutant(
    'a redirect is a success',
    'deliver/verdict.ts',
    'if (status >= 200 && status < 300) return verdictOf',
    'if (status >= 200 && status < 400) return verdictOf',
  ),
  mutant(
    'the verdict is not read',
    'deliver/verdict.ts',
    "if (verdict === 'retry') {",
    "if (verdict === 'again') {",
  ),
  mutant(
    'one failure is enough to die',
    'deliver/record.ts',
    'const spent = batch.filter(({ attempts }) => attempts + 1 >= spec.retry.attempts)\n      const left = batch.filter(({ attempts }) => attempts + 1 < spec.retry.attempts)',
    'const spent = batch.filter(({ attempts }) => attempts + 1 >= 2)\n      const left = batch.filter(({ attempts }) => attempts + 1 < 2)',
  ),
  mutant(
    'a handler that is away uses up attempts',
    'deliver/http.ts',
    "return { kind: 'unreachable', error: error.message, reset: error.kind === 'reset' }",
    "return { kind: 'dead', error: error.message }",
  ),
  mutant(
    'Retry-After of a handler is ignored',
    'core/backoff.ts',
    'return Math.max(floor, Math.round(ceiling * random.next()))',
    'return Math.round(ceiling * random.next())',
  ),
  mutant(
    'a lane goes on before its head is done',
    'deliver/worker.ts',
    'const dueAt = await attempt(active, batch, briefOf(active, first.fact))',
    'const trying = attempt(active, batch, briefOf(active, first.fact))\n      if (taken > 0) active.drop(batch.length)\n      const dueAt = taken > 0 ? undefined : await trying',
  ),
  mutant(
    'a lane is claimed twice',
    'store/sqlite/lanes.ts',
    'if (this.#claimed.has(row.id)) continue\n      this.#claimed.add(row.id)',
    '',
  ),
  mutant(
    'a lane is never given back',
    'store/sqlite/store.ts',
    '      lanes.release(lane)\n',
    '      if (dueAt !== undefined) lanes.release(lane)\n',
  ),
  mutant(
    'no rescue: a running call is left after a crash',
    'store/sqlite/calls.ts',
    'SELECT * FROM calls WHERE ended_at IS NULL AND due_at <= ? ORDER',
    'SELECT * FROM calls WHERE ended_at IS NULL AND (started_at IS NULL OR finished_at IS NOT NULL) AND due_at <= ? ORDER',
  ),
  mutant(
    'a module that throws is done',
    'deliver/module.ts',
    "return { kind: 'retry', error: thrownName(error), floor: 0 }",
    "return { kind: 'delivered', status: 200 }",
  ),
  mutant(
    'thrown messages are logged',
    'core/errors.ts',
    'error instanceof Error ? `it threw ${error.name}`',
    'error instanceof Error ? `it threw ${error.message}`',
  ),
  // Tools
  mutant(
    'after_crash: fail is forgotten',
    'tools/host.ts',
    "if (tool.spec.afterCrash === 'fail') return",
    'if (tool.spec.afterCrash.length > 9) return',
  ),
  mutant(
    'a tool that must not run twice is tried again',
    'tools/run.ts',
    "const mayRunAgain = spec.afterCrash === 'retry' || result.ran === false",
    'const mayRunAgain = true',
  ),
  mutant(
    'a fresh key per attempt',
    'tools/http.ts',
    "'idempotency-key': id,",
    "'idempotency-key': `${id}.${call.attempt}`,",
  ),
  mutant(
    'a fresh key per answer',
    'tools/answer.ts',
    ': call.callId\n}',
    ': `${call.callId}.${call.posts}`\n}',
  ),
  mutant(
    'answer from memory',
    'tools/run.ts',
    "const done = await ports.step(finish(call, { kind: 'output', text: result.output }, now, null, steady))",
    "void ports.service.answer(call.sessionId, call.callId, { output: result.output }, call.callId).catch(() => undefined)\n      const done = await ports.step(finish(call, { kind: 'output', text: result.output }, now, null, steady))",
  ),
  mutant(
    'the run is not written down first',
    'tools/run.ts',
    'if (!(await ports.step(begun))) return null',
    'void ports.step(begun)',
  ),
  mutant(
    'a finished call runs again after a crash',
    'tools/host.ts',
    'return await answerCall(ports, tool, call, !take(call.callId))',
    'return take(call.callId) ? await answerCall(ports, tool, call, false) : await enter(tool, call, true, abort)',
  ),
  mutant(
    'a call that is put off is answered at once',
    'tools/run.ts',
    'return (await ports.step(deferRun(call, dueAt))) ? dueAt : null',
    "return await giveUp(ports, spec, call, 'put off')",
  ),
  mutant(
    'not_delivered is waited for',
    'tools/answer.ts',
    "if (word === 'not_delivered') {",
    "if (word === 'never') {",
  ),
  mutant(
    'the fresh turn has a fresh key',
    'tools/answer.ts',
    '`${call.callId}.resend`',
    '`${call.callId}.resend.${call.posts}.${ports.clock.now()}`',
  ),
  mutant(
    'a refused output is posted for ever',
    'tools/answer.ts',
    'if (error.status >= 400 && error.status < 500 && !error.transient) {',
    'if (error.status >= 499 && error.status < 500 && !error.transient) {',
  ),
  mutant(
    'an answer whose action is gone stays open',
    'tools/answer.ts',
    "if (state !== 'required') return await closeGone(ports, call, state, restarted)",
    "if (state !== 'required') return clock.steady() + 1e9",
  ),
  mutant(
    'a closed call is closed again',
    'tools/ledger.ts',
    '(from) => !FINAL_CALL_STATES.includes(from as CallState),\n    ) as CallState[],\n    set: { state,',
    '(from) => !FINAL_CALL_STATES.includes(from as CallState),\n    ).concat(FINAL_CALL_STATES) as CallState[],\n    set: { state,',
  ),
  // The service's client
  mutant('a 401 is retried', 'service/requester.ts', 'authorization.reject(token)', 'void token'),
  mutant(
    'a used-up budget is asked again at once',
    'service/budget.ts',
    'const until = clock.steady() + wait',
    'const until = clock.steady() + wait / 20',
  ),
  mutant(
    'waiters of a closed budget are forgotten',
    'service/budget.ts',
    '      this.#admit(bucket)\n    })\n  }',
    '    })\n  }',
  ),
  mutant(
    'a directory that is away is a 401',
    'service/requester.ts',
    "if (status === 401 && code !== 'directory_unavailable' && token !== null)",
    "if ((status === 401 || code === 'directory_unavailable') && token !== null)",
  ),
  mutant(
    'a stop leaves its timers',
    'service/budget.ts',
    '        waiter.timer.cancel()\n        waiter.fail(error)',
    '        waiter.fail(error)',
  ),
  mutant(
    'polling goes on after the stop',
    'source/poll.ts',
    'for (const timer of timers) timer.cancel()',
    '',
  ),
]
