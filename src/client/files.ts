import { ServiceError } from '../core/errors.ts'
import { asList, parsePage } from '../protocol/answers.ts'
import { sleep } from './transport/requester.ts'
import type { ActOptions, CallOptions } from './request.ts'
import { readFileContent, readFileListing, readSnapshot, readWrittenFile } from './resource.ts'
import type { FileContent, FileListing, Snapshot, WrittenFile } from './resource.ts'
import type { Reader } from './shape.ts'
import type { Operation } from './call.ts'
import type { Transport } from './transport.ts'
import { batches } from './upload.ts'
import type { FileInput } from './upload.ts'

export interface Files {
  /**
   * Writes files into the workspace, over existing ones, in as many requests as needed. While the workspace is not
   * ready it retries within `timeout`. After a failure, files of earlier requests may have been written.
   */
  write(
    sessionId: string,
    files: Iterable<FileInput> | AsyncIterable<FileInput>,
    options?: CallOptions,
  ): Promise<WrittenFile[]>
  /** Takes a snapshot, which `list` and `read` then show. */
  refresh(sessionId: string, options?: ActOptions): Promise<Snapshot>
  /** The last snapshot; with `refresh` a new one, which needs the scope `sessions:write`. */
  list(sessionId: string, query?: { refresh?: boolean }, options?: CallOptions): Promise<FileListing>
  /** A file of the last snapshot; `path` is relative to the workspace directory. */
  read(sessionId: string, path: string, options?: CallOptions): Promise<FileContent>
}

/** Milliseconds between attempts while the workspace starts. */
const COMING_UP = { first: 100, most: 2000 }
/** The most bytes of an answer with a file: a file that is not text comes as a whole, in base64. */
const CONTENT_MAX = 64 * 1024 * 1024

const readWritten: Reader<WrittenFile[]> = (value) =>
  parsePage(
    asList(value),
    (entry) => readWrittenFile(entry, 'a written file'),
    (fault) => {
      throw fault
    },
  ).data

export function filesOf(transport: Transport): Files {
  /** `conflict` means that the workspace is not ready and nothing was done, so each attempt is a new request. */
  async function onceReady<T>(operation: Operation, attempt: () => Promise<T>): Promise<T> {
    for (let wait = COMING_UP.first; ; wait = Math.min(wait * 2, COMING_UP.most)) {
      try {
        return await attempt()
      } catch (error) {
        if (!(error instanceof ServiceError) || error.code !== 'conflict' || wait > operation.left())
          throw error
        await sleep(transport.clock, wait, operation.signal)
      }
    }
  }

  return {
    write: (session, files, options) =>
      transport.within('writeFiles', options, async (operation) => {
        const written: WrittenFile[] = []
        for await (const batch of batches(files)) {
          const request = { ids: { session }, body: () => ({ files: batch }), act: true } as const
          written.push(
            ...(await onceReady(operation, () =>
              transport.read(operation, request, readWritten, 'written files'),
            )),
          )
        }
        return written
      }),
    refresh: (session, options) =>
      transport.within('refreshFiles', options, (operation) =>
        onceReady(operation, () =>
          transport.read(operation, { ids: { session }, act: options ?? true }, readSnapshot, 'a snapshot'),
        ),
      ),
    list: (session, { refresh = false } = {}, options) =>
      transport.within('listFiles', options, (operation) => {
        const query = refresh ? { [snapshotParameter(transport)]: '1' } : {}
        return onceReady(operation, () =>
          transport.read(operation, { ids: { session }, query }, readFileListing, 'a listing of files'),
        )
      }),
    read: (session, path, options) =>
      transport.call(
        'readFile',
        { ids: { session }, query: { path }, maxAnswer: CONTENT_MAX },
        options,
        readFileContent,
        'a file',
      ),
  }
}

function snapshotParameter(transport: Transport): string {
  const { snapshotParameter: name } = transport.found
  if (name !== null) return name
  const message =
    "the service's document has no parameter that takes a snapshot first; set routes.snapshot_parameter, or call refresh"
  throw new ServiceError({ code: 'route_unknown', status: 0, message })
}
