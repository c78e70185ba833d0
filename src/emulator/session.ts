import { randomUUID } from 'node:crypto'
import type { Action } from './action.ts'
import type { Artifact } from './artifact.ts'
import type { PersistedEvent } from './event.ts'
import type { PermissionRule } from './policy.ts'
import { Roll } from './roll.ts'
import type { Run } from './run.ts'
import type { Tool } from './tool.ts'
import type { Turn } from './turn.ts'
import type { Workspace } from './workspace.ts'

export const SESSION_STATUSES = ['idle', 'working', 'requires_action', 'failed'] as const
export type SessionStatus = (typeof SESSION_STATUSES)[number]

export interface AgentSettings {
  id: string | null
  model: string | null
  credentialId: string | null
  instructions: string
  approvalMode: string
  permissionRules: PermissionRule[]
  /** Undefined: the default set. */
  tools: Tool[] | undefined
}

/** The creator of a session; null for a session that is older than the field. */
export type Source = 'api' | 'console' | 'cli' | null

/** The repository that a session works on, as its clone left it. */
export interface Repo {
  readonly fullName: string
  /** The branch of the clone; null before it exists. */
  branch: string | null
  cloneError: string | null
}

export interface SeedFile {
  path: string
  bytes: Uint8Array
}

/** A message that was accepted. `position` counts from 1 while it waits. */
export interface Message {
  readonly id: string
  readonly text: string
  readonly at: number
}

/** Everything that the service holds of one session. */
export interface Session {
  readonly id: string
  status: SessionStatus
  readonly createdAt: number
  updatedAt: number
  title: string
  metadata: Record<string, string>
  readonly source: Source
  readonly tokenId: string
  /** The runtime of its workspaces, as it was when the session was created. */
  runtime: 'current' | 'older'
  agent: AgentSettings
  /** The instructions at the time when the workspace was built. */
  builtInstructions: string
  text: Record<string, unknown> | null
  readonly repo: Repo | null
  readonly files: SeedFile[]
  readonly profiles: string[]
  preview: { url: string | null; port: number | null; publishedUrl: string | null }
  /** The actions that it waits for now. */
  actions: Action[]
  readonly turns: Turn[]
  /** The events that have a place in the transcript. */
  items: PersistedEvent[]
  readonly queue: Message[]
  run: Run | null
  /** When the bridge is up again after the tools were replaced. */
  bridgeReadyAt: number
  /** False until the MCP servers were started, and again once the tools were replaced. */
  serversStarted: boolean
  readonly workspace: Workspace
  artifacts: Artifact[]
  deletedAt: number | null
}

type NewSession = Pick<
  Session,
  'title' | 'metadata' | 'source' | 'tokenId' | 'agent' | 'text' | 'repo' | 'files' | 'profiles' | 'workspace'
>

export function newSession(of: NewSession, now: number): Session {
  return {
    ...of,
    id: randomUUID(),
    status: 'idle',
    createdAt: now,
    updatedAt: now,
    builtInstructions: of.agent.instructions,
    runtime: 'current',
    preview: { url: null, port: null, publishedUrl: null },
    actions: [],
    turns: [],
    items: [],
    queue: [],
    run: null,
    bridgeReadyAt: 0,
    serversStarted: false,
    artifacts: [],
    deletedAt: null,
  }
}

/** Sets `updated_at`; two changes never have the same time. */
export function touch(session: Session, now: number): void {
  session.updatedAt = Math.max(now, session.updatedAt + 1)
}

/** Deleted sessions that the ledger remembers. */
const MOST_DELETED = 10_000

/** The sessions of the organization. Deleted ones are in a list of their own, for the ledger. */
export class Sessions {
  readonly #live = new Map<string, Session>()
  readonly #deleted = new Roll<Session>(MOST_DELETED)

  get size(): number {
    return this.#live.size
  }

  add(session: Session): void {
    this.#live.set(session.id, session)
  }

  find(id: string): Session | undefined {
    return this.#live.get(id)
  }

  /** Oldest first. */
  live(): Session[] {
    return [...this.#live.values()]
  }

  deleted(): readonly Session[] {
    return this.#deleted.all()
  }

  /** Puts a session back, live or deleted. */
  restore(session: Session): void {
    if (session.deletedAt === null) this.add(session)
    else this.#deleted.push(session)
  }

  remove(session: Session, now: number): void {
    session.deletedAt = now
    this.#live.delete(session.id)
    this.#deleted.push(session)
  }
}
