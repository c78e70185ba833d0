import type { HttpReply, Random } from '../../src/std/ports.ts'
import { Malformed, readItem, readSession, readTurn } from '../../src/core/wire.ts'
import { attemptOf, readAnswer } from '../../src/sidecar/deliver/targets/verdict.ts'
import { parseHealth, parseOutcome, parsePage, parseWebhook } from '../../src/protocol/answers.ts'
import { VirtualClock } from '../support/clock.ts'
import { mutateText, mutateValue, pick, whole } from './mutate.ts'
import { Tally } from './tally.ts'

const BODIES = ['', '{"verdict":"retry"}', '{"verdict":"dead"}', '{"ok":true}', 'text', '(no output)']
const STATUSES = [100, 199, 200, 202, 204, 206, 299, 301, 304, 400, 404, 410, 422, 429, 500, 503, 599, 999]
const RETRY_AFTER = ['0', '1', '1e9', '-5', 'Sat, 21 Nov 2026 05:00:00 GMT', 'never', '999999999999999999']

/** What an app may answer, and more. */
export function replyOf(random: Random): HttpReply {
  return {
    status: random.next() < 0.9 ? pick(random, STATUSES) : whole(random, 2000),
    headers: random.next() < 0.5 ? {} : { 'retry-after': mutateText(pick(random, RETRY_AFTER), random) },
    body: mutateText(pick(random, BODIES), random),
    truncated: random.next() < 0.1,
  }
}

/** Answers of handlers and resources of the service, of every shape: each has a meaning, and none is an exception. */
export async function attackAnswers(count: number, random: Random): Promise<Tally> {
  const tally = new Tally()
  const clock = new VirtualClock()
  for (let index = 0; index < count; index++) {
    const reply = replyOf(random)
    const verdict = readAnswer(reply, clock.now())
    if (verdict.kind === 'retry' && !(verdict.floor >= 0 && verdict.floor < Number.MAX_SAFE_INTEGER))
      throw new Error(`a wait of ${verdict.floor} after ${JSON.stringify(reply)}`)
    if (verdict.kind !== 'aborted') JSON.stringify(attemptOf(verdict, 1, 1))
    tally.note(`handler ${verdict.kind}`)
    readResource(random, tally)
  }
  return tally
}

const SESSION = {
  id: 's', object: 'session', status: 'requires_action', updated_at: 5, created_at: 1, title: 't',
  metadata: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
  required_actions: [{ type: 'function_call', turn_id: 't', call_id: 'c', name: 'f', arguments: {}, created_at: 1, expires_at: null }],
} // prettier-ignore
const TURN = { id: 'turn_1', session_id: 's', status: 'completed', created_at: 1, completed_at: 2, artifacts: 'ready' } // prettier-ignore
const ITEM = { id: 'i', session_id: 's', type: 'message', created_at: 1, detail: { event: 'agent.message' } }
const PAGE = { object: 'list', data: [SESSION], has_more: false, last_id: 's' }

const READERS: readonly [unknown, (value: unknown) => unknown][] = [
  [SESSION, (value) => readSession(value, () => undefined)],
  [TURN, (value) => readTurn(value, 's')],
  [ITEM, (value) => readItem(value, 's')],
  [PAGE, (value) => parsePage(value, (entry) => readSession(entry, () => undefined), () => undefined)],
  [{ id: 'w', url: 'https://x/', events: [], active: true }, parseWebhook],
  [{ scopes: ['cli'], usable: true, missing_scopes: [] }, parseHealth],
  [{ outcome: 'delivered' }, parseOutcome],
] // prettier-ignore

function readResource(random: Random, tally: Tally): void {
  const [value, read] = pick(random, READERS)
  try {
    read(mutateValue(value, random))
    tally.note('resource read')
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    tally.note('resource malformed')
  }
}
