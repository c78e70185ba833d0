import { mutant, type Mutant } from './mutant.ts'

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
    '|| tools.has(name)) return null',
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
    "if (tool.spec.afterCrash === 'fail') return",
    'if (tool.spec.afterCrash.length > 9) return',
  ),
  mutant(
    'a tool that must not run twice is tried again',
    'sidecar/tools/run.ts',
    "const mayRunAgain = spec.afterCrash === 'retry' || result.ran === 'no'",
    'const mayRunAgain = true',
  ),
  mutant(
    'a tool that gave no answer is not told that it may have run',
    'sidecar/tools/run.ts',
    "const uncertain = result.ran === 'unknown'",
    'const uncertain = false',
  ),
  mutant(
    'an answer of a tool that cannot be read becomes its output',
    'sidecar/tools/http.ts',
    '      // A certificate that is refused,',
    "      if (error instanceof NetworkFault && error.kind === 'unreadable') return { kind: 'output', output: NO_OUTPUT }\n      // A certificate that is refused,",
  ),
  mutant(
    'a fresh key per attempt',
    'sidecar/tools/http.ts',
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
    "const done = await ports.step(finish(call, { kind: 'output', text: result.output }, now, null, steady))",
    "void ports.service.answer(call.sessionId, call.callId, { output: result.output }, call.callId).catch(() => undefined)\n      const done = await ports.step(finish(call, { kind: 'output', text: result.output }, now, null, steady))",
  ),
  {
    // Whether a call stands as running is looked at once more before its tool is asked.
    name: 'the run is not written down first',
    edits: [
      ['sidecar/tools/run.ts', 'if (!(await ports.step(begun))) return null', 'void ports.step(begun)'],
      [
        'sidecar/tools/run.ts',
        "if ((await store.calls.get(running.callId))?.state !== 'running') return null",
        'await store.calls.get(running.callId)',
      ],
    ],
  },
  mutant(
    'a finished call runs again after a crash',
    'sidecar/tools/host.ts',
    'return await post(tool?.spec ?? REMOVED, call)',
    'return tool === undefined || ours.has(call.callId) ? await post(REMOVED, call) : await enter(tool, call, true, abort)',
  ),
  mutant(
    'a call that is put off is answered at once',
    'sidecar/tools/run.ts',
    'return (await ports.step(deferRun(call, dueAt))) ? dueAt : null',
    "return await giveUp(ports, spec, call, 'put off')",
  ),
  mutant(
    'the fresh turn has a fresh key',
    'sidecar/tools/fresh-turn.ts',
    '`${call.callId}.resend`',
    '`${call.callId}.resend.${call.posts}.${ports.clock.now()}`',
  ),
  mutant(
    'without a key a fresh turn is sent again without a look',
    'sidecar/tools/fresh-turn.ts',
    'if (mayHaveActed(error) && !idempotent) {',
    "if (mayHaveActed(error) && !idempotent && error.code === 'looked for') {",
  ),
  mutant(
    'without a key a fresh turn is sent again after a crash without a look',
    'sidecar/tools/fresh-turn.ts',
    '} else if (restarted && !service.idempotent()) {',
    '} else if (restarted && service.idempotent() && call.posts < 0) {',
  ),
  mutant(
    'a fresh turn that may still be on its way is sent again',
    'sidecar/tools/fresh-turn.ts',
    "if (found === 'unknown' || call.posts < ARRIVED_BY)",
    "if (found === 'unknown')",
  ),
  mutant(
    'a fresh turn that waits behind another is sent again',
    'sidecar/tools/fresh-turn.ts',
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
    "if (call.outcome !== null && call.outcome !== 'refused') return await confirm(",
    "if (call.outcome !== null && call.outcome !== 'refused' && (await isRequired(ports, call)) !== 'required')\n    return await confirm(",
  ),
  mutant(
    'a call that stays listed is looked after for ever',
    'sidecar/tools/answer.ts',
    'if (call.posts >= LOOKS) {',
    'if (call.posts >= LOOKS * 1000) {',
  ),
  mutant(
    'the margin uses up the shortest deadline',
    'sidecar/tools/deadline.ts',
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
    "if (state !== 'required') return clock.steady() + 1e9\n  const details",
  ),
  mutant(
    'a closed call is closed again',
    'sidecar/tools/ledger.ts',
    '(from) => !FINAL_CALL_STATES.includes(from as CallState),\n    ) as CallState[],\n    set: { state,',
    '(from) => !FINAL_CALL_STATES.includes(from as CallState),\n    ).concat(FINAL_CALL_STATES) as CallState[],\n    set: { state,',
  ),
  // Calls that a reading takes on at once
  mutant(
    'a call runs before it is written as running',
    'sidecar/tools/host.ts',
    '      let added: ReadonlySet<string> = new Set()\n',
    '      for (const held of places.values()) held.begin()\n      let added: ReadonlySet<string> = new Set()\n',
  ),
  mutant(
    'a known call is run by every reader that finds it',
    'sidecar/tools/host.ts',
    'if (added.has(callId)) held.begin()',
    'if (added.size >= 0) held.begin()',
  ),
  mutant('a place that is not used is kept', 'sidecar/tools/host.ts', '          else held.leave()\n', ''),
  mutant(
    'a call that is written as running is claimed by nobody',
    'sidecar/store/sqlite/store.ts',
    "if (call.state === 'running' && committed.newCalls.includes(call.callId))",
    "if (call.state === 'answered' && committed.newCalls.includes(call.callId))",
  ),
  mutant(
    'a run that was not begun stays written as running',
    'sidecar/tools/host.ts',
    '      await ports.step(unbeginRun(running, clock.steady()))\n',
    '',
  ),
  mutant(
    'actions that are gone do not close their calls',
    'sidecar/tools/host.ts',
    'if (abort === undefined) void settleGone(callId)',
    'if (abort === undefined) gone.delete(callId)',
  ),
  mutant(
    'a call that cannot be put off is taken up again at once',
    'sidecar/tools/breaking-ports.ts',
    '        rest.refused(error)\n        return false',
    '        return false',
  ),
  mutant(
    'what a tool said goes when the store refuses it',
    'sidecar/tools/breaking-ports.ts',
    '        if (over.aborted) throw error',
    '        if (rest.trying) throw error',
  ),
]
