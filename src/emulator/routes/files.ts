import { isUtf8 } from 'node:buffer'
import { Type } from 'typebox'
import { operation, shape, type Operation } from '../operation.ts'
import type { Limits } from '../limits.ts'
import type { OpenDetails } from '../profile/details.ts'
import { invalid, notFound, refuse } from '../refusal.ts'
import { unreachableRequired } from '../mcp.ts'
import { visitWorkspace } from '../sandbox.ts'
import { touch, type Session } from '../session.ts'
import type { Snapshot, WorkspaceFile } from '../workspace.ts'
import type { World } from '../world.ts'
import { insideWorkspace, readFiles } from './file-entry.ts'
import { findSession } from './find.ts'
import { fileSchema } from './session-body.ts'

const PATH = '/v1/sessions/{session_id}/files'
const closed = { additionalProperties: false }

/** The files of a workspace: write, snapshot, list, read. */
export function fileOperations(details: OpenDetails): Operation[] {
  return [
    operation({
      id: 'writeFiles',
      method: 'POST',
      path: PATH,
      summary: 'Write files into the workspace',
      access: 'sessions:write',
      cost: 'write',
      idempotent: true,
      body: Type.Object({ files: Type.Array(fileSchema(details), { minItems: 1 }) }, closed),
      success: { status: 200, description: 'The written files.', schema: details.files.writtenShape },
      refusals: [404, 409],
      handle: ({ world, params, body }) => {
        const session = findSession(world, params['session_id'])
        const files = readFiles(body.files, world.limits)
        needWorkspace(world, session)
        for (const { path, bytes } of files) session.workspace.write(path, { size: bytes.length, bytes })
        touch(session, world.clock.now())
        const written = files.map(({ path, bytes }) => ({
          object: 'workspace_file',
          path,
          size_bytes: bytes.length,
        }))
        return { status: 200, body: details.files.written(written) }
      },
    }),
    operation({
      id: 'refreshFiles',
      method: 'POST',
      path: `${PATH}/refresh`,
      summary: 'Take a snapshot of the workspace',
      access: 'sessions:write',
      cost: 'write',
      idempotent: true,
      success: {
        status: 200,
        description: 'The state of the listing.',
        schema: details.files.refreshedShape,
      },
      refusals: [404, 409],
      handle: ({ world, params }) => {
        const session = findSession(world, params['session_id'])
        needWorkspace(world, session)
        const listing = viewListing(session.workspace.capture(), world.limits)
        return { status: 200, body: details.files.refreshed(listing) }
      },
    }),
    operation({
      id: 'listFiles',
      method: 'GET',
      path: PATH,
      summary: 'List the files of the last snapshot',
      access: 'sessions:read',
      cost: 'read',
      query: Type.Object(
        {
          [details.files.snapshotQuery]: Type.Optional(
            Type.Enum(['1'], { description: 'Take a snapshot first; needs sessions:write.' }),
          ),
        },
        closed,
      ),
      success: { status: 200, description: 'The listing.', schema: shape('WorkspaceFileList') },
      refusals: [404, 409],
      handle: ({ world, params, query, token }) => {
        const session = findSession(world, params['session_id'])
        if (query[details.files.snapshotQuery] === '1') {
          if (!token.scopes.includes('sessions:write')) {
            throw refuse(
              'permission_denied',
              'a snapshot needs the scope sessions:write, which the token does not have',
            )
          }
          needWorkspace(world, session)
          session.workspace.capture()
        }
        return { status: 200, body: viewListing(session.workspace.snapshot, world.limits) }
      },
    }),
    operation({
      id: 'readFile',
      method: 'GET',
      path: `${PATH}/content`,
      summary: 'Read a file of the last snapshot',
      access: 'sessions:read',
      cost: 'read',
      query: Type.Object(
        { path: Type.String({ description: 'Relative to the workspace directory.' }) },
        closed,
      ),
      success: { status: 200, description: 'The file.', schema: shape('WorkspaceFileContent') },
      refusals: [404],
      handle: ({ world, params, query }) => {
        const { snapshot } = findSession(world, params['session_id']).workspace
        const path = insideWorkspace(query.path)
        const file = snapshot?.files.get(path)
        if (snapshot === null || file?.bytes == null)
          throw notFound('readable file in the last snapshot', path)
        return { status: 200, body: viewContent(path, file.bytes, snapshot.at, world.limits) }
      },
    }),
  ]
}

/**
 * Ensures that the workspace accepts files, and starts it if needed. @throws {Refusal} 400 when a
 * required server prevents its start, 409 while it starts.
 */
function needWorkspace(world: World, session: Session): void {
  const obstacle = unreachableRequired(world, session)
  if (obstacle !== undefined) throw invalid(obstacle)
  const { state } = session.workspace
  visitWorkspace(world, session)
  if (state === 'none' || state === 'gone' || world.clock.now() < session.bridgeReadyAt) {
    throw refuse('conflict', 'the workspace is not ready; nothing was written, try again')
  }
}

function viewListing(snapshot: Snapshot | null, limits: Limits): Record<string, unknown> {
  const data: unknown[] = []
  let bytes = 0
  let truncated = false
  for (const [path, file] of snapshot?.files ?? new Map<string, WorkspaceFile>()) {
    bytes += Buffer.byteLength(path)
    truncated = bytes > limits.listingBytes
    if (truncated) break
    const readable = file.bytes !== null
    data.push({ object: 'workspace_file', path, type: 'file', size_bytes: file.size, readable })
  }
  const state = snapshot === null ? 'missing' : 'ready'
  return { object: 'list', data, state, captured_at: snapshot?.at ?? null, truncated }
}

/** Only text is cut at the inline limit; any other file comes whole, as base64. */
function viewContent(path: string, bytes: Uint8Array, at: number, limits: Limits): Record<string, unknown> {
  const common = { object: 'workspace_file.content', path, captured_at: at }
  if (!isUtf8(bytes)) {
    return { ...common, content: Buffer.from(bytes).toString('base64'), encoding: 'base64', truncated: false }
  }
  const text = Buffer.from(bytes).toString('utf8')
  const content = text.slice(0, limits.inlineCharacters)
  return { ...common, content, encoding: 'utf8', truncated: content.length < text.length }
}
