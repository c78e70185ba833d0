import type { Budgets } from './budget.ts'
import type { Clock } from './clock.ts'
import type { Faults } from './fault.ts'
import type { Idempotency } from './idempotency.ts'
import type { Ledger } from './ledger.ts'
import type { Limits } from './limits.ts'
import type { EventLog } from './log.ts'
import type { Models } from './model.ts'
import type { OpenDetails } from './profile/details.ts'
import type { SavedAgents } from './saved-agent.ts'
import type { Scenario } from './scenario/schema.ts'
import type { Sessions } from './session.ts'
import type { Streams } from './stream.ts'
import type { Tokens } from './token.ts'
import type { Webhooks } from './webhook.ts'

/** One emulated organization: the state for all operations. Two of them share nothing. */
export interface World {
  readonly clock: Clock
  readonly details: OpenDetails
  readonly limits: Limits
  readonly faults: Faults
  readonly tokens: Tokens
  readonly budgets: Budgets
  readonly sessions: Sessions
  readonly models: Models
  readonly savedAgents: SavedAgents
  readonly log: EventLog
  readonly streams: Streams
  readonly webhooks: Webhooks
  readonly ledger: Ledger
  readonly idempotency: Idempotency
  /** May be replaced while the emulator runs. */
  scenario: Scenario
  /** Null: previews cannot be published. */
  readonly previewDomain: string | null
  /** Webhook addresses may be http on loopback. */
  readonly allowHttpWebhooks: boolean
  /** Writes the data file, if there is one; called before any answer, frame or delivery is sent. */
  readonly save: () => void
}
