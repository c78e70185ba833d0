import { mutant, type Mutant } from './mutant.ts'

/** Bugs in deliveries to handlers. */
export const CALLBACKS: readonly Mutant[] = [
  mutant(
    'delivered before it is sent',
    'deliver/turn.ts',
    '    const at = clock.now()\n    const started = clock.steady()\n    const outgoing',
    "    const at = clock.now()\n    const started = clock.steady()\n    recorder.settle(active, batch, 'delivered', { at, ms: 0, status: 200 })\n    const outgoing",
  ),
  mutant(
    'an error of the handler counts as delivered',
    'deliver/targets/verdict.ts',
    'status >= 200 && status < 300',
    'status >= 200 && status < 600 && status !== 410',
  ),
  mutant(
    'a redirect is a success',
    'deliver/targets/verdict.ts',
    'status >= 200 && status < 300',
    'status >= 200 && status < 400',
  ),
  mutant(
    'the verdict is not read',
    'deliver/targets/verdict.ts',
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
    'deliver/targets/http.ts',
    "return { kind: 'unreachable', error: error.message, reset: false }",
    "return { kind: 'dead', error: error.message }",
  ),
  mutant(
    'an answer that cannot be read counts as down',
    'deliver/targets/http.ts',
    "if (error.kind === 'reset') return { kind: 'unreachable'",
    "if (error.kind === 'reset' || error.kind === 'unreadable') return { kind: 'unreachable'",
  ),
  mutant(
    'an answer that cannot be read counts as delivered',
    'deliver/targets/http.ts',
    "if (error.kind === 'aborted') return { kind: 'aborted' }",
    "if (error.kind === 'aborted') return { kind: 'aborted' }\n  if (error.kind === 'unreadable') return { kind: 'delivered', status: 200 }",
  ),
  mutant(
    'transient events share the slots of facts',
    'deliver/worker.ts',
    "if (pump.running && health.state === 'up') transients.offer(fact)",
    "if (pump.running && health.state === 'up')\n        void queue.add(() => target.send([{ fact, attempt: 1, session: null }], stopping.signal))",
  ),
  mutant(
    'one lane of a handler keeps the others waiting',
    'deliver/worker.ts',
    'new PQueue({ concurrency: spec.concurrency })',
    'new PQueue({ concurrency: 1 })',
  ),
  mutant(
    'an attempt that a crash cut gives its number to the next',
    'store/sqlite/begun.ts',
    'SET cut = cut + 1, log',
    'SET log',
  ),
  mutant('an attempt that a crash cut is not shown', 'store/sqlite/begun.ts', 'error: CUT', "error: ''"),
  mutant(
    'an attempt that is stored leaves its row behind',
    'store/sqlite/lanes.ts',
    '      this.#begun.store(lane, number, pos)\n      if (result',
    '      if (result',
  ),
  mutant(
    'Retry-After of a handler is ignored',
    'core/backoff.ts',
    'return Math.max(floor, Math.round(ceiling * random.next()))',
    'return Math.round(ceiling * random.next())',
  ),
  mutant(
    'a lane goes on before its head is done',
    'deliver/turn.ts',
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
    '${moving} AND due_at <= ?',
    '${moving} AND (started_at IS NULL OR finished_at IS NOT NULL) AND due_at <= ?',
  ),
  mutant(
    'a module that throws is done',
    'deliver/targets/module.ts',
    "return { kind: 'retry', error: thrownName(error), floor: 0 }",
    "return { kind: 'delivered', status: 200 }",
  ),
  mutant(
    'thrown messages are logged',
    'core/errors.ts',
    'return `it threw ${error.name}`',
    'return `it threw ${error.message}`',
  ),
]
