import type { FaultSettings } from '../../src/emulator/index.ts'
import type { Chance } from '../simulation/chance.ts'

/** A call that stays listed is looked after for longer than a round takes. */
type Drawn = Exclude<keyof FaultSettings, 'keep_answered'>
type Draws = { [Name in Drawn]-?: (chance: Chance) => FaultSettings[Name] }

const few = (chance: Chance): number => chance.int(1, 4)
const on = (): true => true

/** Every fault of the emulator, with a strength. */
const DRAWS: Draws = {
  drop_streams: on,
  stall_streams: on,
  slow_streams: (chance) => chance.int(500, 100_000),
  stop_pings: on,
  refuse_streams: few,
  lose_cursors: on,
  webhooks_off: on,
  duplicate_webhooks: few,
  reorder_webhooks: on,
  delay_webhooks: (chance) => `${chance.int(1, 1500)}ms`,
  forge_webhooks: on,
  give_up_webhooks: few,
  server_errors: few,
  bad_gateway: few,
  fail_operations: (chance) => [
    {
      probability: 0.3,
      times: chance.int(1, 20),
      ...(chance.is(0.5) ? { lose_reply: true } : { status: chance.pick([500, 502, 503, 504]) }),
      ...(chance.is(0.5) ? { operation: chance.pick(['answerCall', 'getSession', 'listTurns']) } : {}),
    },
  ],
  directory_unavailable: few,
  rate_limit: few,
  retry_after: (chance) => chance.int(0, 2),
  project_limit: few,
  unauthorized: () => 1,
  not_delivered: few,
  lose_answer_replies: few,
  lose_message_replies: few,
  old_runtimes: few,
  unreachable_mcp: () => ['tracker'],
  refuse_openings: few,
  fail_cleanups: few,
  fail_provisioning: few,
  fail_recoveries: few,
  fail_seeds: few,
  fail_artifacts: few,
  clock_skew_ms: (chance) => chance.int(-1500, 1500),
  stream_slots: (chance) => chance.int(1, 2),
  replay_window: (chance) => chance.int(5, 500),
}

export type FaultName = keyof Draws

export const FAULTS = Object.keys(DRAWS) as FaultName[]

/** A few faults at once, none of `except`. */
export function drawFaults(chance: Chance, except: ReadonlySet<FaultName>): FaultSettings {
  const possible = FAULTS.filter((name) => !except.has(name))
  const names = Array.from({ length: chance.int(1, 3) }, () => chance.pick(possible))
  return Object.fromEntries(names.map((name) => [name, DRAWS[name](chance)]))
}
