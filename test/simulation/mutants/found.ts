import { mutant, type Mutant } from './mutant.ts'

/** Bugs that were there, and that the simulation found: their mends undone. */
export const FOUND: readonly Mutant[] = [
  mutant(
    'a wall clock set back makes all sessions old',
    'intake/read.ts',
    'return clock.now() + service.clockOffset() - age',
    'return Math.round(options.startedAt) + service.clockOffset() - age * 0',
  ),
  mutant(
    'what began and ended since the start is old when the first look is slow',
    'intake/diff.ts',
    'if (!(wasThere && atRest && turns.started.length === 0))',
    'if (!(wasThere && atRest))',
  ),
  mutant(
    'items are stored after the reading that lets go of their hint',
    'intake/read.ts',
    '    await items?.read(sessionId, difference.reading.baseline)\n    return await write(entry, { ...difference.reading, hint: hintAfter(entry, difference, context.steady) })',
    '    const written = await write(entry, { ...difference.reading, hint: hintAfter(entry, difference, context.steady) })\n    await items?.read(sessionId, difference.reading.baseline)\n    return written',
  ),
  mutant(
    'a session that is gone is not noticed by its turns',
    'intake/read.ts',
    'if (await isGone(service, error, sessionId)) return null',
    'if (await isGone(service, error, sessionId)) throw error',
  ),
  mutant(
    'a session that is gone is not noticed by its artifacts',
    'intake/look.ts',
    "    if (await isGone(service, error, sessionId)) return 'gone'\n",
    '',
  ),
  mutant(
    'the news begins before the first connection is there',
    'source/stream.ts',
    '      if (saved === null && opening === null) await noteOpening(options)\n',
    '',
  ),
  mutant(
    'what is known of the clock of the service is taken as exact',
    'source/opening.ts',
    'service.clockOffset() - UNSURE',
    'service.clockOffset() - UNSURE * 0',
  ),
  mutant(
    'what was no news is news when it is repeated',
    'source/opening.ts',
    'batch.slice(begin).filter(({ meaning }) => !isPast(meaning.seq))',
    'batch.slice(begin)',
  ),
  mutant(
    'a reading that was overtaken is written',
    'intake/read.ts',
    '    if (isOlder(view.session, view.known)) return await writeNothing(entry, view.known)\n',
    '',
  ),
  mutant(
    'what came before the first subscription is not read',
    'source/subscription.ts',
    "    await options.hint([{ sessionId: null, channel: 'poll', at: clock.now(), scope: 'turns', delay: 0 }])\n",
    "    if (records.length > 0) await options.hint([{ sessionId: null, channel: 'poll', at: clock.now(), scope: 'turns', delay: 0 }])\n",
  ),
  mutant(
    'a stop waits for a session that the stream looks up',
    'source/stream.ts',
    'await Promise.race([done, promise])',
    'await Promise.all([done, promise])',
  ),
  mutant(
    'a stop waits for whoever does not answer a tool',
    'tools/host.ts',
    'limit = clock.after(LEFT_BEHIND, resolve)',
    'limit = clock.after(LEFT_BEHIND, () => undefined)',
  ),
  mutant(
    'an app has no time for a late answer after a restart',
    'tools/late-answer.ts',
    'if (left <= 0)',
    'if (call.expiresAt !== null)',
  ),
  mutant(
    'the fresh turn is not owed once its action is gone',
    'tools/answer.ts',
    "  if (call.outcome === 'not_delivered') return null\n",
    '',
  ),
  mutant(
    'an earlier attempt without a reply is forgotten',
    'service/requester.ts',
    'const last = silent ? error.afterSilence() : error',
    'const last = error',
  ),
  mutant(
    'a call that was posted before a crash counts as ours at once',
    'tools/host.ts',
    '    const restarted = !ours.delete(call.callId)\n',
    '    const restarted = !ours.has(call.callId)\n    take(call.callId)\n',
  ),
  mutant(
    'a call that its app puts off is not woken when its action is gone',
    'store/sqlite/store.ts',
    '      calls.wakeOthers(reading.sessionId, reading.session?.actions.map(({ callId }) => callId) ?? [])\n',
    '',
  ),
  mutant(
    'turns that are not settled are not looked for down the list',
    'intake/look.ts',
    'if (enough && (await readAlone(service, sessionId, missing, turns))) return turns',
    'if (enough) break',
  ),
  mutant(
    'a hint that was put off is given back twice',
    'intake/reconcile.ts',
    'if (await reader.read(entry, sessionId, listed)) store.doneHint(sessionId)',
    'await reader.read(entry, sessionId, listed)\n        store.doneHint(sessionId)',
  ),
  mutant(
    'a session that only a reading ahead finds gone is not noticed',
    'intake/ahead.ts',
    'if (session === null && !reading.taken && !isWaiting()) options.onGone(sessionId)',
    '',
  ),
  mutant(
    'a session that only the stream finds gone is not noticed',
    'source/opening.ts',
    "      await commit({ hints: [{ sessionId, channel: 'poll', at, scope: 'session', delay: 0 }] })\n",
    '',
  ),
  mutant(
    'a tool runs though its app has answered in the commit that wrote the run down',
    'tools/run.ts',
    "if ((await store.call(running.callId))?.state !== 'running') return null",
    'await store.call(running.callId)',
  ),
  mutant(
    'a callback under way goes on after the stop',
    'deliver/http.ts',
    '        connections: handler.concurrency,\n        signal: own.signal,\n',
    '        connections: handler.concurrency,\n',
  ),
  mutant(
    'what became of attempts is forgotten when the disk refuses it',
    'deliver/settler.ts',
    'const last = stopped\n',
    'const last = true\n',
  ),
]
