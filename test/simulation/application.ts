import type { CallbackEvent } from '../../src/core/handler.ts'
import type { HttpReply, HttpRequest } from '../../src/std/ports.ts'
import type { NetworkFaultKind } from '../../src/std/errors.ts'
import type { Agenda } from './agenda.ts'
import type { Chance } from './chance.ts'
import type { Fault } from './faults.ts'
import type { Life } from './life.ts'
import { TOOL_ERROR } from './oracle/secrets.ts'
import type { Watch } from './oracle/watch.ts'
import { eventsOf, textOf } from './request.ts'
import type { Sites } from './sites.ts'

type Answer = (reply: HttpReply | NetworkFaultKind) => void

const HANDLER: readonly Fault[] = [
  'error',
  'hang',
  'slow',
  'gone',
  'redirect',
  'busy',
  'verdict_retry',
  'verdict_dead',
  'garbage',
  'reset',
]
const TOOL: readonly Fault[] = ['error', 'hang', 'slow', 'busy', 'garbage', 'reset']

/** Seconds of the application's own `Retry-After`. */
export const BUSY = 2

const REPLIES: Partial<Record<Fault, HttpReply>> = {
  error: reply(500),
  busy: reply(429, '', { 'retry-after': String(BUSY) }),
  redirect: reply(302, '', { location: 'http://elsewhere.test/' }),
  verdict_retry: reply(200, '{"verdict":"retry"}'),
  verdict_dead: reply(200, '{"verdict":"dead"}'),
  garbage: reply(200, '{"verdict":'),
  gone: reply(410),
}

/** The application: its handlers take events, its tools run. Both fail in the planned ways. */
export class Application {
  readonly #agenda: Agenda
  readonly #chance: Chance
  readonly #sites: Sites
  readonly #watch: Watch
  /** What a handler takes for each callback, milliseconds. */
  readonly #takes: number
  /** A handler that answered 410 is brought back by its operator. */
  onGone: (handler: string) => void = () => undefined
  /** The app answers a call that it put off. */
  onDeferred: (callId: string) => void = () => undefined

  constructor(parts: { agenda: Agenda; chance: Chance; sites: Sites; watch: Watch; takes: number }) {
    this.#agenda = parts.agenda
    this.#chance = parts.chance
    this.#sites = parts.sites
    this.#watch = parts.watch
    this.#takes = parts.takes
  }

  serve(kind: string, request: HttpRequest, life: Life, answer: Answer): void {
    if (kind === 'tool') this.#runTool(request, answer)
    else this.#take(request, life, answer)
  }

  #take(request: HttpRequest, life: Life, answer: Answer): void {
    const handler = request.url.slice(request.url.lastIndexOf('/') + 1)
    const events = eventsOf(request)
    const fault = this.#sites.pass('app handler', 'before', HANDLER, handler)
    const reply = this.#replyTo(handler, fault)
    this.#watch.received(handler, events, life, reply === null ? null : reply.status, fault)
    if (fault === 'reset') answer('reset')
    else if (reply !== null) {
      this.#agenda.in(fault === 'slow' ? 1500 : this.#takes + this.#chance.int(1, 25), () => answer(reply))
    }
  }

  #replyTo(handler: string, fault: Fault | null): HttpReply | null {
    if (fault === 'hang' || fault === 'reset') return null
    if (fault === 'gone') this.#agenda.in(this.#chance.int(500, 5000), () => this.onGone(handler))
    return (fault === null ? undefined : REPLIES[fault]) ?? reply(204)
  }

  #runTool(request: HttpRequest, answer: Answer): void {
    const name = request.url.slice(request.url.lastIndexOf('/') + 1)
    const { call_id: callId } = JSON.parse(textOf(request)) as { call_id: string }
    this.#watch.toolRan(name, callId, request.headers['idempotency-key'] ?? null)
    const fault = this.#sites.pass('app tool', 'before', TOOL, name)
    const ms = fault === 'slow' ? 2500 : this.#chance.pick([2, 40, 900])
    if (fault === 'hang') return
    if (fault === 'reset') return answer('reset')
    if (fault === 'error') return void this.#agenda.in(ms, () => answer(reply(500, TOOL_ERROR)))
    if (fault === 'busy') return answer(reply(503, '', { 'retry-after': String(BUSY) }))
    if (fault === 'garbage') return answer(reply(422, TOOL_ERROR))
    if (name === 'later') {
      this.onDeferred(callId)
      return void this.#agenda.in(ms, () => answer(reply(202)))
    }
    this.#agenda.in(ms, () => answer(reply(200, outputOf(callId, this.#chance))))
  }

  /** A handler that is a function. `done` settles it. */
  call(handler: string, event: CallbackEvent, life: Life, done: (fault: Fault | null) => void): void {
    const fault = this.#sites.pass(
      'app function',
      'before',
      ['error', 'hang', 'slow', 'verdict_dead'],
      handler,
    )
    this.#watch.received(
      handler,
      [event],
      life,
      fault === 'error' ? 500 : fault === 'hang' ? null : 200,
      fault,
    )
    if (fault === 'hang') return
    this.#agenda.in(fault === 'slow' ? 1500 : this.#chance.int(0, 10), () => done(fault), life)
  }

  /** A tool that is a function. */
  run(callId: string, life: Life, done: (output: string | null) => void): void {
    this.#watch.toolRan('inside', callId, callId)
    const fault = this.#sites.pass('app tool', 'before', ['error', 'hang', 'slow'], 'inside')
    if (fault === 'hang') return
    const output = fault === 'error' ? null : outputOf(callId, this.#chance)
    this.#agenda.in(fault === 'slow' ? 2500 : this.#chance.pick([0, 40, 900]), () => done(output), life)
  }
}

/** Each run has another result, so the oracle can identify the posted one. */
function outputOf(callId: string, chance: Chance): string {
  return `result ${chance.hex(4)} of ${callId}`
}

function reply(status: number, body = '', headers: Record<string, string> = {}): HttpReply {
  return { status, body, headers, truncated: false }
}
