import type { Action } from './action.ts'
import type { Artifact } from './artifact.ts'
import type { PersistedEvent } from './event.ts'
import type { Page } from './page.ts'
import type { OpenDetails } from './profile/details.ts'
import type { Session } from './session.ts'
import type { Subscription } from './subscription.ts'
import { viewTools } from './tool.ts'
import type { Turn } from './turn.ts'
import { WORKSPACE_DIRECTORY } from './workspace.ts'

type Fields = Record<string, unknown>

/** A list resource: one page of rows, and the cursor of the next. */
export function viewList<Row>(details: OpenDetails, page: Page<Row>, view: (row: Row) => Fields): Fields {
  const data = page.rows.map(view)
  return { object: 'list', data, has_more: page.hasMore, last_id: data.at(-1)?.['id'] ?? details.emptyLastId }
}

export function viewSession(details: OpenDetails, session: Session): Fields {
  const { agent, preview, repo } = session
  return {
    object: 'session',
    id: session.id,
    status: session.status,
    created_at: session.createdAt,
    updated_at: session.updatedAt,
    title: session.title,
    metadata: session.metadata,
    source: session.source,
    created_by_token: session.tokenId,
    agent: {
      id: agent.id,
      model: agent.model,
      model_credential_id: agent.credentialId,
      approval_mode: agent.approvalMode,
      instructions: agent.instructions,
      permission_rules: agent.permissionRules,
      tools: viewTools(agent.tools),
    },
    environment: {
      type: 'sandbox',
      state: details.workspaceStates[session.workspace.state],
      workspace_directory: WORKSPACE_DIRECTORY,
      repo: {
        full_name: repo?.fullName ?? null,
        branch: repo?.branch ?? null,
        clone_error: repo?.cloneError ?? null,
      },
      ...(details.readsBackSeeds
        ? { files: session.files.map(({ path }) => ({ path })), profiles: session.profiles }
        : {}),
    },
    preview: { url: preview.url, port: preview.port, published_url: preview.publishedUrl },
    required_actions: session.actions.map((action) => viewAction(details, action)),
  }
}

function viewAction(details: OpenDetails, action: Action): Fields {
  const common = { type: action.type, turn_id: action.turnId, call_id: action.callId }
  const times = { created_at: action.createdAt, expires_at: action.expiresAt }
  return { ...common, ...particularsOf(details, action), ...times }
}

function particularsOf(details: OpenDetails, action: Action): Fields {
  if (action.type === 'approval') return details.action.approval(action)
  if (action.type === 'question') return details.action.question(action)
  return { name: action.name, arguments: action.arguments }
}

export function viewTurn(details: OpenDetails, turn: Turn): Fields {
  const open = {
    completed_at: turn.completedAt,
    subagent_id: turn.subagentId,
    error: turn.error === null ? null : details.turnError(turn.error),
  }
  return {
    object: 'turn',
    id: turn.id,
    session_id: turn.sessionId,
    status: turn.status === 'stopped' ? details.stopped : turn.status,
    created_at: turn.createdAt,
    started_at: turn.startedAt,
    artifacts: turn.artifacts,
    artifacts_skipped: turn.skipped,
    ...(details.omitsNulls ? withoutNulls(open) : open),
  }
}

/** The item for an event of the transcript. */
export function viewItem(details: OpenDetails, event: PersistedEvent): Fields {
  return {
    object: 'item',
    id: itemId(event),
    session_id: event.sessionId,
    type: details.item.typeOf(event.type),
    created_at: event.at,
    role: roleOf(details, event.type),
    content: contentOf(event),
    detail: details.item.detail(event),
  }
}

/** The id is made from the event at each read, not stored, because there may be very many items. */
function itemId({ sessionId, seq }: PersistedEvent): string {
  return `item_${sessionId.slice(0, 8)}${seq.toString(16).padStart(10, '0')}`
}

/** The index of the item with this id in `items`, which are ordered by `seq`; -1 if there is none. */
export function placeOfItem(items: readonly PersistedEvent[], id: string): number {
  const seq = Number.parseInt(id.slice(-10), 16)
  let low = 0
  let high = items.length - 1
  while (low <= high) {
    const middle = (low + high) >> 1
    const event = items[middle]
    if (event === undefined) break
    if (event.seq === seq) return itemId(event) === id ? middle : -1
    if (event.seq < seq) low = middle + 1
    else high = middle - 1
  }
  return -1
}

export function viewArtifact(details: OpenDetails, artifact: Artifact): Fields {
  return {
    object: 'artifact',
    id: artifact.id,
    session_id: artifact.sessionId,
    ...details.artifact(artifact),
  }
}

/** A subscription as it is listed; its secret is shown once, by its creation. */
export function viewSubscription(subscription: Subscription): Fields {
  const { id, url, events, active } = subscription
  return { object: 'webhook.subscription', id, url, events, active }
}

function withoutNulls(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
}

function roleOf(details: OpenDetails, type: string): string {
  if (type === 'user.message') return 'user'
  if (type === 'agent.tool_result') return details.item.roles.tool
  return type.startsWith('agent.') && type !== 'agent.error'
    ? details.item.roles.agent
    : details.item.roles.system
}

/** Text for people: the text of the message, else the payload as JSON. */
function contentOf({ payload }: PersistedEvent): string {
  for (const key of ['text', 'output', 'message', 'question', 'answer', 'path']) {
    const value = payload[key]
    if (typeof value === 'string') return value
  }
  return JSON.stringify(payload)
}
