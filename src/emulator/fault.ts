import { Type, type Static } from 'typebox'
import { readBody } from './check.ts'
import { readDuration } from './duration.ts'
import { invalid } from './refusal.ts'

const flag = (description: string) => Type.Optional(Type.Boolean({ description }))
const times = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000, description: `${description} Counts down.` }))

/** What `PUT /_emulator/faults` takes. It replaces what was there; an empty object means that all is well. */
export const faultsSchema = Type.Object(
  {
    drop_streams: flag('Cut every open stream now. Happens once and is not kept.'),
    stall_streams: flag('Keep streams open and write nothing into them, not even pings.'),
    stop_pings: flag('Send no pings.'),
    refuse_streams: times('Answer this many stream requests with 429 before they open.'),
    lose_cursors: flag('Treat every cursor but 0 as one that names no event.'),
    webhooks_off: flag('Make no webhook attempts; what is owed stays owed.'),
    duplicate_webhooks: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 100,
        description: 'Send every successful delivery this many times more.',
      }),
    ),
    reorder_webhooks: flag('Hold deliveries back in pairs and send the later one first.'),
    delay_webhooks: Type.Optional(Type.String({ description: 'Hold every attempt back, for example `5s`.' })),
    forge_webhooks: flag('Sign every delivery with another secret.'),
    server_errors: times('Answer this many requests with 500 internal_error, having done nothing.'),
    bad_gateway: times('Answer this many requests with 502 and a page of HTML, having done nothing.'),
    directory_unavailable: times('Answer this many requests with 503 directory_unavailable.'),
    rate_limit: times('Answer this many requests with 429 rate_limit_exceeded.'),
    retry_after: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 86_400,
        description: 'Seconds named by the two above; 1 when left out.',
      }),
    ),
    unauthorized: times('Reject the token of this many requests with 401.'),
    not_delivered: times('Tell this many answers `not_delivered`.'),
    lose_answer_replies: times('Accept this many answers, then cut the connection instead of replying.'),
    lose_message_replies: times('The same for messages.'),
    unreachable_mcp: Type.Optional(
      Type.Array(Type.String(), { description: 'Names of MCP servers that are away.' }),
    ),
    refuse_openings: times('Fail this many creations with an opening message at that message.'),
    fail_cleanups: times('Leave this many of these sessions behind, and name them in the error.'),
    fail_provisioning: times('Provision no workspace for this many runs that need one: they cannot start.'),
    fail_recoveries: times('Lose this many paused workspaces when they are to wake.'),
    fail_seeds: times('Fail the writing of this many seeded files.'),
    fail_artifacts: times('Fail the collection of this many turns.'),
    clock_skew_ms: Type.Optional(
      Type.Integer({ description: 'Added to the `Date` header and to webhook timestamps.' }),
    ),
  },
  { additionalProperties: false },
)

export type FaultSettings = Static<typeof faultsSchema>
type Flag =
  | 'stall_streams'
  | 'stop_pings'
  | 'lose_cursors'
  | 'webhooks_off'
  | 'reorder_webhooks'
  | 'forge_webhooks'
type Counted =
  | 'refuse_streams'
  | 'server_errors'
  | 'bad_gateway'
  | 'directory_unavailable'
  | 'rate_limit'
  | 'unauthorized'
  | 'not_delivered'
  | 'lose_answer_replies'
  | 'lose_message_replies'
  | 'refuse_openings'
  | 'fail_cleanups'
  | 'fail_provisioning'
  | 'fail_recoveries'
  | 'fail_seeds'
  | 'fail_artifacts'

/** The faults in force. */
export class Faults {
  #settings: FaultSettings = {}
  readonly #listeners = new Set<(settings: FaultSettings) => void>()

  get(): FaultSettings {
    return { ...this.#settings }
  }

  /** @throws {Refusal} 400 when `settings` is not what the schema says. */
  set(settings: unknown): void {
    const { drop_streams: drop, ...kept } = readBody(faultsSchema, settings)
    if (kept.delay_webhooks !== undefined && readDuration(kept.delay_webhooks) === undefined) {
      throw invalid('delay_webhooks must be a duration such as 5s')
    }
    this.#settings = kept
    for (const listener of this.#listeners)
      listener({ ...kept, ...(drop === undefined ? {} : { drop_streams: drop }) })
  }

  /** Tells `listener` of every new setting. */
  onChange(listener: (settings: FaultSettings) => void): void {
    this.#listeners.add(listener)
  }

  on(name: Flag): boolean {
    return this.#settings[name] === true
  }

  /** True, and one less left, while the counted fault lasts. */
  use(name: Counted): boolean {
    const left = this.#settings[name] ?? 0
    if (left > 0) this.#settings = { ...this.#settings, [name]: left - 1 }
    return left > 0
  }

  get retryAfter(): string {
    return String(this.#settings.retry_after ?? 1)
  }

  get unreachableMcp(): readonly string[] {
    return this.#settings.unreachable_mcp ?? []
  }

  get webhookCopies(): number {
    return this.#settings.duplicate_webhooks ?? 0
  }

  get webhookDelayMs(): number {
    return readDuration(this.#settings.delay_webhooks ?? '0s') ?? 0
  }

  get clockSkewMs(): number {
    return this.#settings.clock_skew_ms ?? 0
  }
}
