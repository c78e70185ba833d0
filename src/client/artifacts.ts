import { download } from './download.ts'
import type { Download } from './download.ts'
import { listOf } from './list.ts'
import type { List } from './list.ts'
import { remove } from './remove.ts'
import type { CallOptions, PageQuery } from './request.ts'
import { readArtifact } from './resource.ts'
import type { Artifact } from './resource.ts'
import type { Transport } from './transport.ts'

export interface Artifacts {
  list(sessionId: string, query?: PageQuery, options?: CallOptions): List<Artifact>
  /** The bytes of one artifact. */
  download(sessionId: string, artifactId: string, options?: CallOptions): Promise<Download>
  /** All artifacts, as a tar archive. */
  archive(sessionId: string, options?: CallOptions): Promise<Download>
  delete(sessionId: string, artifactId: string, options?: CallOptions): Promise<void>
}

export function artifactsOf(transport: Transport): Artifacts {
  return {
    list: (session, query = {}, options) =>
      listOf(
        transport,
        {
          operation: 'listArtifacts',
          ids: { session },
          query: { ...query },
          read: readArtifact,
          what: 'an artifact',
        },
        options,
      ),
    download: (session, artifact, options) =>
      download(transport, 'readArtifact', { ids: { session, artifact } }, options),
    archive: (session, options) => download(transport, 'readArchive', { ids: { session } }, options),
    delete: (session, artifact, options) =>
      remove(transport, 'deleteArtifact', { session, artifact }, options),
  }
}
