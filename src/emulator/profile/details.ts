import type { TSchema } from 'typebox'
import type { Method } from '../http.ts'
import type { Action } from '../action.ts'
import type { Artifact } from '../artifact.ts'
import type { BucketName, BudgetState } from '../budget.ts'
import type { Event, WebhookType } from '../event.ts'
import type { OpenLimits } from '../limits.ts'
import type { Scope } from '../token.ts'
import type { TurnError } from '../turn.ts'
import type { WorkspaceState } from '../workspace.ts'

/** The emulator's own words for the outcome of an answer. */
export type Outcome = 'delivered' | 'repeated' | 'expired' | 'not_delivered'

/** The allowed entries of a `files` array. */
export type FileEntryType = 'inline' | 'text'

/** Places that the interface does not show, as OpenAPI path templates. */
interface OpenPaths {
  message: string
  answer: string
  turn: string
  cancel: string
  sessionStream: string
  artifacts: string
  artifact: string
  saveAgent: string
  deleteAgent: string
  saveTemplate: string
  deleteTemplate: string
}

interface ReadMessage {
  steer: boolean
  text: string
}

type Fields = Record<string, unknown>

/**
 * One complete choice of the details that the interface leaves open. The rest of the emulator uses
 * these fields and never `name`, so a third profile is one more file.
 */
export interface OpenDetails {
  readonly name: 'a' | 'b'
  readonly limits: OpenLimits
  readonly paths: OpenPaths
  operationId(name: string): string

  readonly idempotency: {
    readonly header: string
    /** How long a first answer is replayed. */
    readonly keptMs: number
    /** The answer to the same value with another body. */
    readonly otherBody: 'conflict' | 'replay'
    /** The effect of a value over 255 characters. */
    readonly overlong: 'refuse' | 'ignore'
  }
  readonly budget: {
    readonly names: Readonly<Record<BucketName, string>>
    /** False: only reads and creations are charged. */
    readonly chargesWrites: boolean
    headers(state: BudgetState): Record<string, string>
    /** Each header's schema, for the description. */
    readonly described: Readonly<Record<string, TSchema>>
  }
  readonly auth: {
    /** `error.code` of a 401. */
    readonly rejectedCode: string
    /** True: an operation also names its scope in `x-required-scope`. */
    readonly namesScope: boolean
    readonly modelReadScope: Scope
    /** True: a token may hold `credentials:write` beside session scopes. */
    readonly mixesScopes: boolean
  }
  readonly queueFullStatus: number
  readonly bridgeIncompatibleStatus: number
  /** When deprecated operations are removed, `YYYY-MM-DD`; null without an announcement. */
  readonly sunset: string | null

  /** The body of the message operation, of `input` on a session's creation, and their reply. */
  readonly message: {
    readonly body: TSchema
    readonly opening: TSchema
    read(body: unknown): ReadMessage
    reply(message: { id: string; at: number; sessionId: string; position: number | null }): Fields
    readonly replyShape: Readonly<Record<string, TSchema>>
  }
  readonly answer: {
    readonly outcomes: Readonly<Record<Outcome, string>>
    reply(outcome: string, action: Action): Fields
    readonly replyShape: Readonly<Record<string, TSchema>>
  }
  /** The fourth turn status. */
  readonly stopped: string
  turnError(error: TurnError): Fields
  readonly turnErrorShape: TSchema
  /** The answer to the deletion of a session. */
  deletedSession(id: string): Fields | undefined
  /** Fields that a required action of these types has beyond the stated ones. */
  readonly action: {
    approval(action: Action): Fields
    question(action: Action): Fields
    readonly shape: Readonly<Record<string, TSchema>>
  }
  artifact(artifact: Artifact): Fields
  readonly artifactShape: Readonly<Record<string, TSchema>>
  /** False: bytes are always served as `application/octet-stream`. */
  readonly artifactsKeepType: boolean
  readonly item: {
    /** The item type of an event, undefined for one that has no place in the transcript. */
    typeOf(eventType: string): string | undefined
    readonly types: readonly string[]
    readonly roles: Readonly<Record<'agent' | 'tool' | 'system', string>>
    detail(event: Event): Fields
  }
  /** True: fields without a value are left out; false: they are null. */
  readonly omitsNulls: boolean
  readonly emptyLastId: '' | null
  readonly sortsSessionsBy: 'createdAt' | 'updatedAt'
  readonly approvalModes: { readonly automatic: string; readonly asking: string }
  readonly workspaceStates: Readonly<Record<WorkspaceState, string>>
  readonly verbosities: readonly string[]
  readonly textFormat: TSchema
  /** True: PATCH takes `agent.model` and `agent.model_credential_id`. */
  readonly patchesModel: boolean
  /** True: saved agents and templates are kept apart, with a ceiling each; false: a template is an agent by another name. */
  readonly templatesApart: boolean
  /** The field with the display name of a model connector. */
  readonly connectorName: string
  /** The route that removes a model connection; the path names `credential_id`. */
  readonly disconnect: { readonly method: Method; readonly path: string }
  /** The reply to a fork. */
  fork(session: Fields, stated: Fields): Fields
  readonly forkShape: Readonly<Record<string, TSchema>>
  readonly preview: {
    readonly body: TSchema
    readPort(body: unknown): number | undefined
    reply(of: { sessionId: string; port: number | null; url: string | null }): Fields
    readonly replyShape: TSchema
  }
  readonly files: {
    readonly entryTypes: readonly FileEntryType[]
    /** The query parameter that requests a new snapshot. */
    readonly snapshotQuery: string
    written(entries: readonly Fields[]): unknown
    readonly writtenShape: TSchema
    refreshed(listing: Fields): Fields
    readonly refreshedShape: TSchema
  }
  /** `environment.repo` of a session's creation, and the repository's full name in it. */
  readonly repo: { readonly body: TSchema; read(body: unknown): string }
  /** Patched instructions hold from the next turn, or from the next workspace. */
  readonly instructionsHold: 'turn' | 'workspace'
  /** True: `environment` reads back the seeded files' paths and the profiles. */
  readonly readsBackSeeds: boolean
  /** The consequence for a turn whose answer was `not_delivered`. */
  readonly lostAnswer: 'fails' | 'hangs'
  /** The `code` of `approval.resolved` when a person decided. */
  readonly personalApprovalCode: { readonly code?: null }

  /** Spells the payload keys that the interface does not show. */
  spell(open: Readonly<Fields>): Fields
  internalType(type: string): string
  /** The `data:` of a stream frame. */
  frame(event: Event): Fields
  readonly stream: {
    readonly transients: readonly string[]
    readonly unplacedCursor: 'nothing' | 'everything'
    readonly stop: { readonly name: string; readonly closes: boolean; data(fromSeq: number): Fields }
  }
  readonly webhook: {
    readonly secretPrefix: string
    /** Dead deliveries in a row that make a subscription inactive. */
    readonly deadBeforeInactive: number
    envelope(of: {
      id: string
      type: WebhookType
      at: number
      sessionId: string
      turnId: string | null
    }): Fields
  }
}
