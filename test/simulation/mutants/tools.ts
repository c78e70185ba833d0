import { mutant, tested, type Mutant } from './mutant.ts'

/** Bugs in function calls. */
export const TOOLS: readonly Mutant[] = [
  mutant(
    'a call without a tool is counted when it is over',
    'sidecar/report.ts',
    "if (fact.type !== 'action.required') return null",
    "if (fact.type !== 'action.resolved') return null",
  ),
  mutant(
    'calls that a tool answers are counted as without one',
    'sidecar/report.ts',
    '|| answers(tools, name)) return null',
    '|| name.length > 99) return null',
  ),
  mutant(
    'a call without a tool is counted by every channel',
    'sidecar/report.ts',
    'if (call !== null) observer.callWithoutTool(call)',
    'if (call !== null) for (const _ of Object.keys(fact.seen)) observer.callWithoutTool(call)',
  ),
  mutant(
    'after_crash: fail is forgotten',
    'sidecar/tools/host.ts',
    "if (tool.spec.afterCrash === 'fail')",
    'if (tool.spec.afterCrash.length > 9)',
  ),
  mutant(
    'a tool that must not run twice is tried again',
    'sidecar/tools/run.ts',
    "const mayRunAgain = spec.afterCrash === 'retry' || result.ran === 'no'",
    'const mayRunAgain = true',
  ),
  mutant(
    'a tool run after a missing answer is not marked as uncertain',
    'sidecar/tools/run.ts',
    "const uncertain = result.ran === 'unknown'",
    'const uncertain = false',
  ),
  mutant(
    'an answer of a tool that cannot be read becomes its output',
    'sidecar/tools/targets.ts',
    '      // If a connection or a certificate is refused,',
    "      if (error instanceof NetworkFault && error.kind === 'unreadable') return { kind: 'output', output: NO_OUTPUT }\n      // If a connection or a certificate is refused,",
  ),
  mutant(
    'a fresh key per attempt',
    'sidecar/tools/targets.ts',
    "'idempotency-key': id,",
    "'idempotency-key': `${id}.${call.attempt}`,",
  ),
  mutant(
    'a fresh key per answer',
    'sidecar/tools/answer.ts',
    ': call.callId\n}',
    ': `${call.callId}.${call.posts}`\n}',
  ),
  mutant(
    'answer from memory',
    'sidecar/tools/run.ts',
    "return await write(ports, call, { type: 'result_fixed', result: fixed, error: null, at: clock.now() })",
    `void ports.service.answer(call.sessionId, call.callId, { output: result.output }, call.callId).catch(() => undefined)
      return await write(ports, call, { type: 'result_fixed', result: fixed, error: null, at: clock.now() })`,
  ),
  {
    // Whether a call stands as running is looked at once more before its tool is asked.
    name: 'the run is not written down first',
    edits: [
      [
        'sidecar/tools/run.ts',
        'if (running === null || !(await ports.step({ callId: call.callId, event }))) return SUPERSEDED',
        'if (running === null) return SUPERSEDED\n    void ports.step({ callId: call.callId, event })',
      ],
      [
        'sidecar/tools/run.ts',
        "if ((await ports.store.calls.get(call.callId))?.state !== 'running') return SUPERSEDED",
        'await ports.store.calls.get(call.callId)',
      ],
    ],
  },
  {
    name: 'a finished call runs again after a crash',
    edits: [
      [
        'sidecar/tools/host.ts',
        'return await post(held.ports, tool?.spec ?? REMOVED, call)',
        'return tool === undefined || ours.has(call.callId) ? await post(held.ports, REMOVED, call) : await enter(tool, call, held)',
      ],
      [
        'sidecar/tools/run.ts',
        "stageOf(call) === 'running' ? 'run_begun_again'",
        "stageOf(call) !== 'received' ? 'run_begun_again'",
      ],
      ['core/call-machine.ts', '  finished: {\n', "  finished: {\n    run_begun_again: 'running',\n"],
    ],
  },
  mutant(
    'a call that is put off is answered at once',
    'sidecar/tools/run.ts',
    "return await write(ports, call, { type: 'run_deferred' }, { wait })",
    "return await giveUp(ports, spec, call, 'put off')",
  ),
  mutant(
    'the follow-up message has a new key',
    'sidecar/tools/follow-up.ts',
    '`${call.callId}.resend`',
    '`${call.callId}.resend.${call.posts}.${ports.clock.now()}`',
  ),
  mutant(
    'without a key a follow-up message is sent again without a look',
    'sidecar/tools/follow-up.ts',
    'if (mayHaveActed(error) && !idempotent) {',
    "if (mayHaveActed(error) && !idempotent && error.code === 'looked for') {",
  ),
  mutant(
    'without a key a follow-up message is sent again after a crash without a look',
    'sidecar/tools/follow-up.ts',
    '} else if (restarted && !service.idempotent()) {',
    '} else if (restarted && service.idempotent() && call.posts < 0) {',
  ),
  mutant(
    'a follow-up message that may still be on its way is sent again',
    'sidecar/tools/follow-up.ts',
    "if (found === 'unknown' || call.posts < ARRIVED_BY)",
    "if (found === 'unknown')",
  ),
  mutant(
    'a follow-up message that waits behind another is sent again',
    'sidecar/tools/follow-up.ts',
    "return found === 'absent' && !idle ? 'unknown' : found",
    'return idle ? found : found',
  ),
  mutant(
    'a POST without a key is repeated after a lost reply',
    'client/transport/requester.ts',
    'call.repeatable === true || keyed ||',
    'call.repeatable === true || !keyed ||',
  ),
  mutant(
    'an answer that was taken is posted again while its call stays listed',
    'sidecar/tools/answer.ts',
    "if (stage === 'accepted') return await confirm(",
    "if (stage === 'accepted' && (await ports.isRequired(call)) !== 'required')\n    return await confirm(",
  ),
  mutant(
    'a call that stays listed is looked after for ever',
    'sidecar/tools/answer.ts',
    'if (call.posts >= LOOKS) {',
    'if (call.posts >= LOOKS * 1000) {',
  ),
  mutant(
    'the margin uses up the shortest deadline',
    'sidecar/tools/run.ts',
    'Math.min(MARGIN, Math.max(0, span) * SHARE)',
    'Math.max(MARGIN, Math.max(0, span) * SHARE)',
  ),
  mutant(
    'a refused output is posted for ever',
    'sidecar/tools/answer.ts',
    'if (error.status >= 400 && error.status < 500 && !error.transient) {',
    'if (error.status >= 499 && error.status < 500 && !error.transient) {',
  ),
  mutant(
    'an answer whose action is gone stays open',
    'sidecar/tools/answer.ts',
    "if (state !== 'required') return await closeGone(ports, call, state, restarted)\n  const details",
    "if (state !== 'required') return { kind: 'due', at: ports.clock.steady() + 1e9 }\n  const details",
  ),
  mutant(
    'a closed call is closed again',
    'core/call-machine.ts',
    '  answered: {},\n  not_delivered: {},\n  failed: {},\n',
    "  answered: { answered: 'answered', failed: 'failed' },\n  not_delivered: { failed: 'failed' },\n  failed: { failed: 'failed' },\n",
  ),
  mutant(
    'a step is written wherever its call stands',
    'core/call-machine.ts',
    'TRANSITIONS[stage][event.type] === undefined ? null',
    'TRANSITIONS[stage] === undefined ? null',
  ),
  // Calls that a reading takes on at once
  mutant(
    'a call runs before it is written as running',
    'sidecar/tools/host.ts',
    '        await ports.add(written)\n',
    '        for (const call of written) reserved.get(call)?.begin()\n        await ports.add(written)\n',
  ),
  tested(
    { file: 'intake/snapshot.test.ts', only: 'left the scope' },
    'a reading ahead runs the calls of a session that left the scope',
    'sidecar/intake/snapshot.ts',
    'if (!ownership.filter.active || ownership.isOurs(session)) await calls.take(session)',
    'await calls.take(session)',
  ),
  tested(
    { file: 'intake/snapshot.test.ts', only: 'read again since' },
    'a reading ahead that a later hint dropped takes on its calls',
    'sidecar/intake/snapshot.ts',
    'const isDropped = !reading.taken && readings.get(sessionId) !== reading',
    'const isDropped = false',
  ),
  tested(
    { file: 'intake/snapshot.test.ts', only: 'which was dropped has accepted' },
    'a call that a dropped read accepted is not looked for',
    'sidecar/intake/snapshot.ts',
    'if (over.length > 0)',
    'if (over.length < 0)',
  ),
  tested(
    { file: 'intake/snapshot.test.ts', only: 'reported after its action is resolved' },
    'the end of a turn that a fast tool caused is reported before its action is resolved',
    'sidecar/intake/diff.ts',
    'isFinal(turn) && !endedSince.has(turn.id)',
    'isFinal(turn)',
  ),
  tested(
    { file: 'intake/snapshot.test.ts', only: 'another turn has begun since' },
    'a turn that a fast tool ended waits for the next read though another turn has begun',
    'sidecar/intake/snapshot.ts',
    'others.every((turn) => settled.has(turn.id)) ?',
    'others.length >= 0 ?',
  ),
  {
    name: 'a known call is run by every reader that finds it',
    edits: [
      [
        'sidecar/tools/host.ts',
        'known[index] === null && !active.has(callId)',
        'known[index] !== undefined && !active.has(callId)',
      ],
      [
        'sidecar/tools/host.ts',
        'for (const call of written) reserved.get(call)?.leave()',
        'for (const call of written) last === null ? reserved.get(call)?.leave() : reserved.get(call)?.begin(last)',
      ],
      [
        'sidecar/tools/host.ts',
        'const startedAt = clock.now()',
        'const startedAt = clock.now(); let last = null',
      ],
      [
        'sidecar/tools/host.ts',
        'const leases = new Map(',
        'for (const { lease } of added) last = lease ?? last\n      const leases = new Map(',
      ],
    ],
  },
  mutant(
    'a place that is not used is kept',
    'sidecar/tools/host.ts',
    'for (const call of written) reserved.get(call)?.leave()',
    'reserved.clear()',
  ),
  mutant(
    'a call that is written as running has no claim',
    'sidecar/store/sqlite/store.ts',
    'if (lease !== null) calls.claimed(callId)',
    'if (lease !== null && callId.length > 99) calls.claimed(callId)',
  ),
  mutant(
    'a run that was not begun stays written as running',
    'sidecar/tools/host.ts',
    'if (!pollLoop.running || abort.signal.aborted) return await withdraw(by, running)',
    'if (!pollLoop.running || abort.signal.aborted) return SUPERSEDED',
  ),
  mutant(
    'actions that are gone do not close their calls',
    'sidecar/tools/host.ts',
    'if (abort === undefined) void settleGone(callId)',
    'if (abort === undefined) gone.delete(callId)',
  ),
  mutant(
    'a call that cannot be put off is taken up again at once',
    'sidecar/tools/ledger.ts',
    '        rest.refused(error)\n        return false',
    '        return false',
  ),
  mutant(
    'what a tool said goes when the store refuses it',
    'sidecar/tools/ledger.ts',
    '        if (over.aborted) throw error',
    '        if (rest.trying) throw error',
  ),
  tested(
    { file: 'tools/host.test.ts', only: 'though a read of its own hangs' },
    'a read of its own that hangs keeps a call open that another read has shown to be gone',
    'sidecar/tools/host.ts',
    'isRequired: (call) => isRequired(call, abort.signal),',
    'isRequired: ports.isRequired,',
  ),
]
