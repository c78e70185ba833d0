import { mutant, type Mutant } from './mutant.ts'

/** Bugs in deliveries to handlers. */
export const CALLBACKS: readonly Mutant[] = [
  mutant(
    'delivered before it is sent',
    'sidecar/deliver/lane-runner.ts',
    '    attempt.again = false\n',
    '    attempt.again = false\n    this.#keeper.recorder.delivered({ lane: active, batch, attempt: { at: attempt.at, ms: 0, status: 200 } })\n',
  ),
  mutant(
    'an error of the handler counts as delivered',
    'sidecar/deliver/targets/verdict.ts',
    'status >= 200 && status < 300',
    'status >= 200 && status < 600 && status !== 410',
  ),
  mutant(
    'a redirect is a success',
    'sidecar/deliver/targets/verdict.ts',
    'status >= 200 && status < 300',
    'status >= 200 && status < 400',
  ),
  mutant(
    'the verdict is not read',
    'sidecar/deliver/targets/verdict.ts',
    "if (verdict === 'retry') {",
    "if (verdict === 'again') {",
  ),
  mutant(
    'one failure is enough to die',
    'sidecar/deliver/policy.ts',
    'const spent = batch.filter(({ attempts }) => attempts + 1 >= retry.attempts)\n      const left = batch.filter(({ attempts }) => attempts + 1 < retry.attempts)',
    'const spent = batch.filter(({ attempts }) => attempts + 1 >= 2)\n      const left = batch.filter(({ attempts }) => attempts + 1 < 2)',
  ),
  mutant(
    'an unreachable handler uses up attempts',
    'sidecar/deliver/targets/http.ts',
    "return { kind: 'unreachable', error: fault.message, reset: false }",
    "return { kind: 'dead', error: fault.message }",
  ),
  mutant(
    'an answer that cannot be read counts as down',
    'sidecar/deliver/targets/http.ts',
    "if (fault.kind === 'reset') return { kind: 'unreachable'",
    "if (fault.kind === 'reset' || fault.kind === 'unreadable') return { kind: 'unreachable'",
  ),
  mutant(
    'an answer that cannot be read counts as delivered',
    'sidecar/deliver/targets/http.ts',
    "if (fault.kind === 'aborted') return { kind: 'aborted' }",
    "if (fault.kind === 'aborted') return { kind: 'aborted' }\n  if (fault.kind === 'unreadable') return { kind: 'delivered', status: 200 }",
  ),
  mutant(
    'transient events share the slots of facts',
    'sidecar/deliver/dispatcher.ts',
    "if (pollLoop.running && health.state === 'up') transients.offer(fact)",
    "if (pollLoop.running && health.state === 'up')\n        lanes.begin({ id: -1 - Math.floor(clock.steady()), handler: spec.name, key: '', lease: { owner: '', epoch: 0 } }, [{ attempts: 0, cut: 0, fact }])",
  ),
  {
    name: 'one lane of a handler keeps the others waiting',
    edits: [
      [
        'sidecar/deliver/lane-runner.ts',
        'while (this.#inFlight < concurrency && ',
        'while (this.#inFlight < Math.min(concurrency, 1) && ',
      ],
      [
        'sidecar/deliver/lane-runner.ts',
        'if (this.#ready.length > 0 && (taken >= TURN',
        'if (taken < 0 && (taken >= TURN',
      ],
    ],
  },
  mutant(
    'an attempt that a crash cut gives its number to the next',
    'sidecar/store/sqlite/lanes.ts',
    'SET cut = cut + 1, log',
    'SET log',
  ),
  mutant(
    'an attempt that a crash cut is not shown',
    'sidecar/store/sqlite/lanes.ts',
    'error: CUT',
    "error: ''",
  ),
  mutant(
    'an attempt that is stored leaves its row behind',
    'sidecar/store/sqlite/lanes.ts',
    '      this.#begun.store(lane, number, pos)\n      let of',
    '      let of',
  ),
  mutant(
    'Retry-After of a handler is ignored',
    'std/backoff.ts',
    'return Math.max(floor, Math.round(ceiling * random.next()))',
    'return Math.round(ceiling * random.next())',
  ),
  mutant(
    'a lane goes on before its head is done',
    'sidecar/deliver/lane-runner.ts',
    '    store.lanes.begin(active.lane, attempt.positions)\n    this.#keeper.target.send(attempt.outgoing, active.ended)\n',
    '    store.lanes.begin(active.lane, attempt.positions)\n    this.#keeper.target.send(attempt.outgoing, active.ended)\n    const second = taken > 0 ? active.head(2)[1] : undefined\n    if (second !== undefined) this.#keeper.target.send([{ fact: second.fact, attempt: 1, session }], () => undefined)\n',
  ),
  mutant(
    'a lane is claimed twice',
    'sidecar/store/sqlite/lanes.ts',
    'if (this.#claimed.has(row.id)) continue\n      this.#claimed.add(row.id)',
    '',
  ),
  mutant(
    'a lane is never given back',
    'sidecar/store/sqlite/store.ts',
    '    async release(lane) {\n      lanes.release(lane)\n',
    '    async release() {\n',
  ),
  mutant(
    'no rescue: a running call is left after a crash',
    'sidecar/store/sqlite/calls.ts',
    '${moving} AND due_at <= ?',
    '${moving} AND (started_at IS NULL OR finished_at IS NOT NULL) AND due_at <= ?',
  ),
  mutant(
    'a module that throws is done',
    'sidecar/deliver/targets/module.ts',
    "return { kind: 'retry', error: thrownName(error), floor: 0 }",
    "return { kind: 'delivered', status: 200 }",
  ),
  mutant(
    'thrown messages are logged',
    'std/errors.ts',
    'return `it threw ${error.name}`',
    'return `it threw ${error.message}`',
  ),
]
