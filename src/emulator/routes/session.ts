import { Type, type Static } from 'typebox'
import { acceptMessage } from '../agent.ts'
import type { Limits } from '../limits.ts'
import { nothing, operation, shape, type Operation } from '../operation.ts'
import { orderedPage, pageOf, placeById } from '../page.ts'
import type { OpenDetails } from '../profile/details.ts'
import { invalid, refuse, type Refusal } from '../refusal.ts'
import { removeSession } from '../removal.ts'
import { repoFor } from '../repository.ts'
import { needRuntime } from '../runtime.ts'
import { newWorkspace } from '../sandbox.ts'
import { newSession, SESSION_STATUSES, touch, type AgentSettings, type Session } from '../session.ts'
import type { Token } from '../token.ts'
import { checkTools } from '../tool.ts'
import { viewList, viewSession } from '../view.ts'
import type { World } from '../world.ts'
import { isProfile } from './environment-profile.ts'
import { readFiles } from './file-entry.ts'
import { findSession } from './find.ts'
import { sessionBodies, type PatchedAgent, type SessionBodies } from './session-body.ts'

type CreateBody = Static<SessionBodies['create']>

const PATH = '/v1/sessions/{session_id}'

/** Sessions: create, list, read, change, delete. */
export function sessionOperations(details: OpenDetails, limits: Limits): Operation[] {
  const bodies = sessionBodies(details, limits)
  return [
    operation({
      id: 'createSession',
      method: 'POST',
      path: '/v1/sessions',
      summary: 'Create a session',
      access: 'sessions:write',
      cost: 'creation',
      idempotent: true,
      body: bodies.create,
      bodyOptional: true,
      bodyLimit: limits.createBodyBytes,
      success: {
        status: 201,
        description: 'The session; a clone is pending, not done.',
        schema: shape('Session'),
      },
      handle: ({ world, body, token }) => {
        const session = createSession(world, body, token)
        return { status: 201, body: viewSession(world.details, session) }
      },
    }),
    operation({
      id: 'listSessions',
      method: 'GET',
      path: '/v1/sessions',
      summary: 'List sessions',
      access: 'sessions:read',
      cost: 'read',
      query: Type.Object(
        {
          ...orderedPage.properties,
          metadata: Type.Optional(
            Type.String({ description: 'One pair, `<key>:<value>`.', pattern: '^[^:]+:' }),
          ),
          status: Type.Optional(Type.Enum([...SESSION_STATUSES])),
        },
        { additionalProperties: false },
      ),
      success: { status: 200, description: 'One page.', schema: shape('SessionList') },
      handle: ({ world, query }) => {
        const sessions = inOrder(world)
        const page = pageOf(sessions, query, placeById(sessions), (session) => matches(session, query))
        return { status: 200, body: viewList(details, page, (session) => viewSession(details, session)) }
      },
    }),
    operation({
      id: 'getSession',
      method: 'GET',
      path: PATH,
      summary: 'Read a session',
      access: 'sessions:read',
      cost: 'read',
      query: nothing,
      success: { status: 200, description: 'The session.', schema: shape('Session') },
      refusals: [404],
      handle: ({ world, params }) => ({
        status: 200,
        body: viewSession(details, findSession(world, params['session_id'])),
      }),
    }),
    operation({
      id: 'updateSession',
      method: 'PATCH',
      path: PATH,
      summary: 'Change a session',
      access: 'sessions:write',
      cost: 'write',
      body: bodies.patch,
      success: { status: 200, description: 'The session.', schema: shape('Session') },
      refusals: [404, details.bridgeIncompatibleStatus],
      handle: ({ world, params, body }) => {
        const session = findSession(world, params['session_id'])
        patchSession(world, session, body)
        return { status: 200, body: viewSession(details, session) }
      },
    }),
    operation({
      id: 'deleteSession',
      method: 'DELETE',
      path: PATH,
      summary: 'Delete a session and free its slot',
      access: 'sessions:write',
      cost: 'write',
      success:
        details.deletedSession('') === undefined
          ? { status: 204, description: 'Deleted.' }
          : { status: 200, description: 'Deleted.', schema: shape('Deleted') },
      refusals: [404],
      handle: ({ world, params }) => {
        const session = findSession(world, params['session_id'])
        removeSession(world, session)
        const body = details.deletedSession(session.id)
        return body === undefined ? { status: 204 } : { status: 200, body }
      },
    }),
  ]
}

/** @throws {Refusal} 429 `project_limit_exceeded`, which no retry clears. */
export function takeSlot(world: World): void {
  if (world.sessions.size < world.limits.sessions) return
  throw refuse(
    'project_limit_exceeded',
    `the organization has ${world.limits.sessions} concurrent sessions already`,
  )
}

function createSession(world: World, body: CreateBody, token: Token): Session {
  const { environment = {}, input } = body
  const repo = environment.repo === undefined ? null : repoFor(world, environment.repo)
  const profiles = environment.profiles ?? []
  const stray = profiles.find((id) => !isProfile(id))
  if (stray !== undefined)
    throw invalid(`environment.profiles: ${JSON.stringify(stray)} is not a profile of yours`)
  const { agent, text } = settingsOf(world, body)
  const files = readFiles(environment.files ?? [], world.limits)
  takeSlot(world)
  const { title = '', metadata = {} } = body
  const workspace = newWorkspace(world, () => session)
  const session: Session = newSession(
    { title, metadata, source: 'api', tokenId: token.id, agent, text, repo, files, profiles, workspace },
    world.clock.now(),
  )
  if (world.faults.use('old_runtimes')) session.runtime = 'older'
  world.sessions.add(session)
  if (input !== undefined && world.faults.use('refuse_openings')) throw abandon(world, session)
  world.webhooks.send('session.created', session.id, null)
  if (input !== undefined) acceptMessage(world, session, world.details.message.read(input).text)
  return session
}

/**
 * The opening message was refused, so the session is refused too. If it cannot be removed, the
 * client must delete it.
 */
function abandon(world: World, session: Session): Refusal {
  const failed = 'the opening message could not be accepted'
  if (world.faults.use('fail_cleanups')) {
    world.webhooks.send('session.created', session.id, null)
    return refuse('internal_error', `${failed}, and the cleanup failed too: delete session ${session.id}`)
  }
  removeSession(world, session)
  return refuse('internal_error', `${failed}; no session was created`)
}

/**
 * The agent's settings: those of the named saved agent, each overridden by the fields of the
 * request.
 */
function settingsOf(world: World, body: CreateBody): { agent: AgentSettings; text: Session['text'] } {
  const { id, model, model_credential_id, instructions, approval_mode, permission_rules, tools } =
    body.agent ?? {}
  const saved = id === undefined ? undefined : world.savedAgents.find(id)
  if (id !== undefined && saved === undefined) {
    throw invalid(`agent.id ${JSON.stringify(id)} is not a saved agent of yours`)
  }
  checkTools(tools ?? [])
  // A model that replaces the saved one need not match the saved connection.
  const savedCredential = model === undefined ? (saved?.credentialId ?? undefined) : undefined
  const savedModel = model_credential_id === undefined ? (saved?.model ?? undefined) : undefined
  const credential = world.models.choose(model ?? savedModel, model_credential_id ?? savedCredential)
  const agent = {
    id: saved?.id ?? null,
    model: credential.model,
    credentialId: credential.id,
    instructions: instructions ?? saved?.instructions ?? '',
    approvalMode: approval_mode ?? world.details.approvalModes.automatic,
    permissionRules: permission_rules ?? [],
    tools: tools ?? saved?.tools,
  }
  return { agent, text: (body.text as Session['text'] | undefined) ?? saved?.text ?? null }
}

function patchSession(world: World, session: Session, body: Static<SessionBodies['patch']>): void {
  const { title, metadata } = body
  const agent: PatchedAgent = body.agent ?? {}
  if (title === undefined && metadata === undefined && Object.keys(agent).length === 0) {
    throw invalid('nothing to change: give title, metadata or a field of agent')
  }
  if (agent.instructions !== undefined) needRuntime(world, session, 'instructions')
  if (agent.model !== undefined || agent.model_credential_id !== undefined) {
    const credential = world.models.choose(agent.model, agent.model_credential_id)
    session.agent.model = credential.model
    session.agent.credentialId = credential.id
  }
  session.title = title ?? session.title
  session.metadata = metadata ?? session.metadata
  session.agent.instructions = agent.instructions ?? session.agent.instructions
  session.agent.approvalMode = agent.approval_mode ?? session.agent.approvalMode
  session.agent.permissionRules = agent.permission_rules ?? session.agent.permissionRules
  touch(session, world.clock.now())
}

/** In ascending order of the profile's sort key, then of creation. */
function inOrder(world: World): Session[] {
  const sessions = world.sessions.live()
  return world.details.sortsSessionsBy === 'createdAt'
    ? sessions
    : sessions.sort((a, b) => a.updatedAt - b.updatedAt)
}

function matches(session: Session, query: { metadata?: string; status?: string }): boolean {
  if (query.status !== undefined && session.status !== query.status) return false
  if (query.metadata === undefined) return true
  const colon = query.metadata.indexOf(':')
  const key = query.metadata.slice(0, colon)
  return Object.hasOwn(session.metadata, key) && session.metadata[key] === query.metadata.slice(colon + 1)
}
