import { tested, type Mutant } from '../mutant.ts'

/** What bad HTTP of an app, transient events and broken connections must not do to facts and calls. */
export const DELIVERY: readonly Mutant[] = [
  tested(
    { file: 'source/stream.test.ts', only: 'after a connection broke in the middle of a window' },
    'after a broken connection the slot is asked for at once',
    'protocol/slot.ts',
    "if (how === 'closed') this.#scarce = false",
    "if (how !== 'replay_stopped') this.#scarce = false",
  ),
  tested(
    { file: 'deliver/worker.test.ts', only: 'waits once' },
    'a lane waits for the first read of its session whenever it is read again',
    'sidecar/deliver/lane-runner.ts',
    'active.waited = true',
    'active.waited = false',
  ),
  tested(
    { file: 'tools/host.test.ts', only: 'is deleted at the follow-up message' },
    'a session that only a follow-up message finds gone is not read again',
    'sidecar/tools/follow-up.ts',
    'error.notFound ? [readAgain(ports, call)] : undefined',
    'undefined',
  ),
  tested(
    { file: 'e2e/fairness.test.ts' },
    'transient events take the slots of facts',
    'sidecar/deliver/dispatcher.ts',
    'await send(fact, { test: false })',
    "await send(fact, { test: false })\n      lanes.begin({ id: -1, handler: spec.name, key: '', lease: { owner: '', epoch: 0 } }, [{ attempts: 0, cut: 0, fact }])",
  ),
  tested(
    { file: 'deliver/transients.test.ts', only: 'which never wait for them' },
    'transient events start while facts wait',
    'sidecar/deliver/transients.ts',
    'sending < slots && sending < free()',
    'sending < 1000',
  ),
  tested(
    { file: 'e2e/answer.test.ts', only: 'no HTTP' },
    'an answer that cannot be read counts as no answer',
    'sidecar/deliver/targets/http.ts',
    "if (fault.kind === 'unreachable')",
    "if (fault.kind === 'unreachable' || fault.kind === 'unreadable')",
  ),
  tested(
    { file: 'system/http.test.ts', only: 'unreadable' },
    'a 200 that is cut in its body is an answer',
    'system/answer-parser.ts',
    "if (this.#state === 'endless') this.#complete()",
    "if (this.#state !== 'head') this.#complete()",
  ),
  tested(
    { file: 'system/answers.test.ts' },
    'an answer may have a length and a transfer encoding',
    'system/answer-parser.ts',
    "if (encoding !== null && this.length !== null) throw unreadable('it has a length and a transfer encoding')",
    '',
  ),
  tested(
    { file: 'system/http.test.ts' },
    'a line break in a header of a request is sent',
    'system/sender.ts',
    'NO_VALUE.test(value)',
    'false',
  ),
  tested(
    { file: 'e2e/tool.test.ts', only: 'while its certificate is not trusted' },
    'a tool that nothing was sent to may have run',
    'sidecar/tools/targets.ts',
    "error.kind === 'unreachable' ? 'no' : 'unknown'",
    "error.kind === 'aborted' ? 'no' : 'unknown'",
  ),
  tested(
    { file: 'system/http.test.ts', only: 'unreachable: its certificate is not trusted' },
    'a certificate that is refused counts as a reset',
    'system/fault.ts',
    "connecting: 'unreachable'",
    "connecting: 'reset'",
  ),
  tested(
    { file: 'admin/relay.test.ts', only: 'transient frames go to every reader' },
    'the relay leaves transient frames out unless asked',
    'sidecar/admin/relay/routes.ts',
    "default: '1'",
    "default: '0'",
  ),
]
