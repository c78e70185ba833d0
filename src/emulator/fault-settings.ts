import { Type, type Static } from 'typebox'
import { faultsOf } from './check.ts'
import { readDuration } from './duration.ts'

const closed = { additionalProperties: false }
const flag = (description: string) => Type.Optional(Type.Boolean({ description }))
const times = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000, description: `${description} Counts down.` }))

const failingOperation = Type.Object(
  {
    operation: Type.Optional(
      Type.String({ description: 'The `operationId` in `/v1/openapi.json`; omitted: every operation.' }),
    ),
    status: Type.Optional(
      Type.Integer({
        minimum: 500,
        maximum: 599,
        description: 'Answer `internal_error` with this status and do nothing; default 500.',
      }),
    ),
    lose_reply: flag('Instead of a failure, process the request, then cut the connection without a reply.'),
    times: times('Number of requests that this affects; omitted: all.'),
    probability: Type.Optional(
      Type.Number({ minimum: 0, maximum: 1, description: 'Probability for each request; default 1.' }),
    ),
  },
  closed,
)

/** The body of `PUT /_emulator/faults`. It replaces all faults; an empty object removes them. */
export const faultsSchema = Type.Object(
  {
    drop_streams: flag('Cut every open stream now. Happens once and is not kept.'),
    stall_streams: flag('Keep streams open and write nothing into them, not even pings.'),
    slow_streams: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000_000,
        description: 'Write at most this many bytes a second into each stream, cut anywhere.',
      }),
    ),
    stop_pings: flag('Send no pings.'),
    refuse_streams: times('Answer this many stream requests with 429 before they open.'),
    stream_slots: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1000,
        description: 'Streams that one token may hold open, while this is set.',
      }),
    ),
    replay_window: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: 'Events after which a replay stops, while this is set.',
      }),
    ),
    lose_cursors: flag('Treat every cursor except 0 as unknown.'),
    webhooks_off: flag('Make no webhook attempts; pending deliveries stay pending.'),
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
    give_up_webhooks: times('Give this many deliveries up without an attempt, as if all had failed.'),
    server_errors: times('Answer this many requests with 500 internal_error and do nothing.'),
    bad_gateway: times('Answer this many requests with 502 and a page of HTML, and do nothing.'),
    fail_operations: Type.Optional(
      Type.Array(failingOperation, {
        maxItems: 100,
        description: 'Fail the requests of operations. The first entry that matches a request is used.',
      }),
    ),
    directory_unavailable: times('Answer this many requests with 503 directory_unavailable.'),
    rate_limit: times('Answer this many requests with 429 rate_limit_exceeded.'),
    retry_after: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 86_400,
        description: 'Seconds in `Retry-After` of `directory_unavailable` and `rate_limit`; default 1.',
      }),
    ),
    project_limit: times('Answer this many creations and forks with 429 project_limit_exceeded.'),
    unauthorized: times('Reject the token of this many requests with 401.'),
    not_delivered: times('Reply to this many answers with `not_delivered`.'),
    keep_answered: times('Accept this many answers, and continue to list their calls as required.'),
    lose_answer_replies: times('Accept this many answers, then cut the connection instead of replying.'),
    lose_message_replies: times('Accept this many messages, then cut the connection instead of replying.'),
    old_runtimes: times('Give this many new sessions a runtime without newer features.'),
    unreachable_mcp: Type.Optional(
      Type.Array(Type.String(), { description: 'Names of unreachable MCP servers.' }),
    ),
    refuse_openings: times(
      'Fail this many creations of sessions with a first message: that message is refused.',
    ),
    fail_cleanups: times(
      'After a refused opening (`refuse_openings`), do not delete this many sessions, and name them in the error.',
    ),
    fail_provisioning: times('Provision no workspace for this many runs that need one: they cannot start.'),
    fail_recoveries: times('Lose this many paused workspaces when they are resumed.'),
    fail_seeds: times('Fail the writing of this many files of `environment.files`.'),
    fail_artifacts: times('Fail the collection of the artifacts of this many turns.'),
    clock_skew_ms: Type.Optional(
      Type.Integer({
        description: 'Milliseconds that are added to the `Date` header and to webhook timestamps.',
      }),
    ),
  },
  closed,
)

export type FaultSettings = Static<typeof faultsSchema>
export type FailingOperation = Static<typeof failingOperation>

type Named<Value> = {
  [Name in keyof FaultSettings]-?: Required<FaultSettings>[Name] extends Value ? Name : never
}[keyof FaultSettings]

/** Faults that are on or off. */
export type Flag = Exclude<Named<boolean>, 'drop_streams'>
/** Faults with a number of occurrences. */
export type Counted = Exclude<
  Named<number>,
  'slow_streams' | 'stream_slots' | 'replay_window' | 'duplicate_webhooks' | 'retry_after' | 'clock_skew_ms'
>

/** All faults of `settings`, one sentence each. `isOperation` checks for known operations. */
export function problemsOf(settings: unknown, isOperation: (name: string) => boolean): string[] {
  const wrong = faultsOf(faultsSchema, settings)
  if (typeof settings !== 'object' || settings === null) return wrong
  const { delay_webhooks: delay, fail_operations: failing } = settings as Record<string, unknown>
  if (typeof delay === 'string' && readDuration(delay) === undefined) {
    wrong.push('delay_webhooks must be a duration such as 5s')
  }
  for (const [index, entry] of (Array.isArray(failing) ? failing : []).entries()) {
    const name: unknown = Reflect.get(Object(entry), 'operation')
    if (typeof name === 'string' && !isOperation(name)) {
      wrong.push(`fail_operations.${index}.operation: the description has no ${JSON.stringify(name)}`)
    }
  }
  return wrong
}
