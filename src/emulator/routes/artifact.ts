import { Readable } from 'node:stream'
import { Type } from 'typebox'
import type { Artifact } from '../artifact.ts'
import { operation, shape, type Operation } from '../operation.ts'
import { orderedPage, pageOf, placeById } from '../page.ts'
import type { OpenDetails } from '../profile/details.ts'
import { notFound } from '../refusal.ts'
import { touch, type Session } from '../session.ts'
import { tarOf } from '../tar.ts'
import { viewArtifact, viewList } from '../view.ts'
import type { World } from '../world.ts'
import { findSession } from './find.ts'

const binary = Type.Unsafe<Uint8Array>({ type: 'string', format: 'binary' })

/** Published artifacts: list, bytes, archive, delete. */
export function artifactOperations(details: OpenDetails): Operation[] {
  return [
    operation({
      id: 'listArtifacts',
      method: 'GET',
      path: details.paths.artifacts,
      summary: 'List the artifacts of a session',
      access: 'artifacts:read',
      cost: 'read',
      query: orderedPage,
      success: { status: 200, description: 'One page.', schema: shape('ArtifactList') },
      refusals: [404],
      handle: ({ world, params, query }) => {
        const { artifacts } = findSession(world, params['session_id'])
        const page = pageOf(artifacts, query, placeById(artifacts))
        return { status: 200, body: viewList(details, page, (artifact) => viewArtifact(details, artifact)) }
      },
    }),
    operation({
      id: 'getArtifactArchive',
      method: 'GET',
      path: '/v1/sessions/{session_id}/artifacts/archive',
      summary: 'Every artifact of a session, as a tar archive',
      access: 'artifacts:read',
      cost: 'read',
      success: { status: 200, description: 'A tar archive.', type: 'application/x-tar', schema: binary },
      refusals: [404],
      handle: ({ world, params }) => {
        const { artifacts } = findSession(world, params['session_id'])
        return { status: 200, bytes: Readable.from(tarOf(newestOf(artifacts))), type: 'application/x-tar' }
      },
    }),
    operation({
      id: 'getArtifactContent',
      method: 'GET',
      path: '/v1/sessions/{session_id}/artifacts/{artifact_id}/content',
      summary: 'The bytes of an artifact',
      access: 'artifacts:read',
      cost: 'read',
      success: {
        status: 200,
        description: 'The bytes, with the content type of the artifact if it is known.',
        type: 'application/octet-stream',
        schema: binary,
      },
      refusals: [404],
      handle: ({ world, params }) => {
        const session = findSession(world, params['session_id'])
        const artifact = session.artifacts.find(({ id }) => id === params['artifact_id'])
        if (artifact === undefined) throw notFound('artifact', params['artifact_id'] ?? '')
        const type = details.artifactsKeepType ? artifact.contentType : 'application/octet-stream'
        return { status: 200, bytes: artifact.bytes, type }
      },
    }),
    operation({
      id: 'deleteArtifact',
      method: 'DELETE',
      path: details.paths.artifact,
      summary: 'Delete an artifact',
      access: 'sessions:write',
      cost: 'write',
      success: { status: 200, description: 'Deleted.', schema: shape('Deleted') },
      refusals: [404],
      handle: ({ world, params }) => {
        const [session, index] = findArtifact(world, params['session_id'], params['artifact_id'] ?? '')
        const [artifact] = session.artifacts.splice(index, 1)
        touch(session, world.clock.now())
        return { status: 200, body: { object: 'artifact', id: artifact?.id, deleted: true } }
      },
    }),
  ]
}

function findArtifact(world: World, sessionId: string | undefined, id: string): [Session, number] {
  const among = sessionId === undefined ? world.sessions.live() : [findSession(world, sessionId)]
  for (const session of among) {
    const index = session.artifacts.findIndex((artifact) => artifact.id === id)
    if (index !== -1) return [session, index]
  }
  throw notFound('artifact', id)
}

/** If several turns published a path, the archive has it once, from the last turn. */
function newestOf(artifacts: readonly Artifact[]): Artifact[] {
  return [...new Map(artifacts.map((artifact) => [artifact.path, artifact])).values()]
}
