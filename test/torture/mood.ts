import type { Answer, App } from '../support/app.ts'
import type { Chance } from '../simulation/chance.ts'
import type { Tally } from './tally.ts'

/** Longer than handlers and tools are waited for, or never: the connection stays open. */
const HANG: Answer = { hang: true }

/** How the application behaves. All that goes wrong is drawn, request by request. */
export class Mood {
  /** The share of callbacks, and of tool runs, that go wrong. */
  handlers = 0
  tools = 0
  /** `handler/id` of what was answered with the verdict dead. */
  readonly deadLettered = new Set<string>()
  /** Stands in every answer of a tool that fails. */
  readonly canary: string
  /** Stands in every answer of a handler that fails. */
  readonly refusal: string
  readonly #chance: Chance
  readonly #tally: Tally

  /** `later`: posts the answer of a call that was put off. */
  constructor(
    app: App,
    options: {
      chance: Chance
      tally: Tally
      canary: string
      refusal: string
      later: (callId: string, output: string) => void
    },
  ) {
    this.#chance = options.chance
    this.#tally = options.tally
    this.canary = options.canary
    this.refusal = options.refusal
    app.handle = ({ name, events }) => {
      if (!this.#chance.is(this.handlers)) return {}
      const [kind, answer] = this.#chance.pick(this.#callbacks())
      this.#tally.add(`handler fault ${kind}`)
      if (kind === 'verdict dead') for (const { id } of events) this.deadLettered.add(`${name}/${id}`)
      return answer
    }
    app.run = ({ name, call }) => {
      const output = outputOf(name, call.call_id)
      if (!this.#chance.is(this.tools)) return { body: output, delay: this.#chance.int(0, 20) }
      const [kind, answer] = this.#chance.pick(this.#runs(output))
      this.#tally.add(`tool fault ${kind}`)
      if (kind === 'later') options.later(call.call_id, output)
      return answer
    }
  }

  #callbacks(): readonly [string, Answer][] {
    const body = this.refusal
    return [
      ['500', { status: 500, body }],
      ['503', { status: 503, body, headers: { 'retry-after': '1' } }],
      ['404', { status: 404, body }],
      ['302', { status: 302, body, headers: { location: 'http://127.0.0.1:9/elsewhere' } }],
      ['410', { status: 410, body }],
      ['slow', { delay: this.#chance.int(50, 900) }],
      ['hang', HANG],
      ['reset', { reset: true }],
      ['torn', { torn: true, body: 'x'.repeat(1000) }],
      ['endless', { body: 'x'.repeat(1024 * 1024) }],
      ['verdict retry', { body: '{"verdict":"retry"}' }],
      ['verdict dead', { body: '{"verdict":"dead"}' }],
    ]
  }

  #runs(output: string): readonly [string, Answer][] {
    const body = this.canary
    return [
      ['500', { status: 500, body }],
      ['503', { status: 503, body, headers: { 'retry-after': '1' } }],
      ['422', { status: 422, body }],
      ['slow', { body: output, delay: this.#chance.int(50, 900) }],
      ['hang', HANG],
      ['reset', { reset: true }],
      ['torn', { torn: true, body: output.repeat(100) }],
      ['endless', { body: 'x'.repeat(1_100_000) }],
      ['later', { status: 202 }],
    ]
  }
}

/** What a tool says to a call, whenever it says something. */
export function outputOf(tool: string, callId: string): string {
  return `${tool} ${callId}`
}
