import { createReadStream } from 'node:fs'
import { messageOf } from '../std/errors.ts'
import { ServiceError } from '../core/errors.ts'
import { BODY_MAX } from './limits.ts'

/** A file to write: its path in the workspace, and its bytes or their source. */
export type FileInput =
  | {
      /** Relative to the workspace directory. */
      path: string
      /** Text is written as UTF-8. Streams of the web and of Node are read once. */
      content: string | Uint8Array | Blob | AsyncIterable<Uint8Array | string>
    }
  | {
      path: string
      /** A file of this machine. */
      from: string
    }

/** An entry of the request (rules FIL-24 to FIL-26). */
export interface InlineFile {
  type: 'inline'
  path: string
  /** Base64. */
  data: string
}

/** The most files of one request. The service does not specify its own limit. */
const FILES_MAX = 50
/** Bytes of a body without its files. */
const AROUND = JSON.stringify({ files: [] }).length

/**
 * The files in batches, each of which fits one request. At most one batch and one further file are in memory.
 * @throws {ServiceError} `file_too_large` for a file that fits no request, `file_unreadable`.
 */
export async function* batches(
  files: Iterable<FileInput> | AsyncIterable<FileInput>,
): AsyncGenerator<InlineFile[], void> {
  let batch: InlineFile[] = []
  let size = AROUND
  for await (const file of files) {
    const read = await inlineFile(file, BODY_MAX - AROUND)
    const added = sizeOf(read) + 1
    if (batch.length > 0 && (size + added > BODY_MAX || batch.length >= FILES_MAX)) {
      yield batch
      batch = []
      size = AROUND
    }
    batch.push(read)
    size += added
  }
  if (batch.length > 0) yield batch
}

/** Reads and encodes one file; stops reading at the limit. @param room maximum bytes of the encoded entry */
export async function inlineFile(file: FileInput, room: number): Promise<InlineFile> {
  const { path } = file
  const ceiling = Math.floor((room - sizeOf({ type: 'inline', path, data: '' })) / 4) * 3
  const parts: string[] = []
  let size = 0
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of bytesOf(file)) {
    size += chunk.length
    if (size > ceiling) throw tooLarge(path, ceiling)
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    const whole = bytes.length - (bytes.length % 3)
    parts.push(bytes.toString('base64', 0, whole))
    rest = Buffer.from(bytes.subarray(whole))
  }
  parts.push(rest.toString('base64'))
  return { type: 'inline', path, data: parts.join('') }
}

async function* bytesOf(file: FileInput): AsyncGenerator<Buffer, void> {
  if ('from' in file) return yield* localFile(file.from)
  const { content } = file
  if (typeof content === 'string') yield Buffer.from(content)
  else if (content instanceof Uint8Array) yield viewOf(content)
  else {
    const stream = content instanceof Blob ? content.stream() : content
    for await (const chunk of stream) yield typeof chunk === 'string' ? Buffer.from(chunk) : viewOf(chunk)
  }
}

async function* localFile(from: string): AsyncGenerator<Buffer, void> {
  try {
    for await (const chunk of createReadStream(from)) yield viewOf(chunk as Uint8Array)
  } catch (cause) {
    const message = `${from} cannot be read: ${messageOf(cause)}`
    throw new ServiceError({ code: 'file_unreadable', status: 0, message, cause })
  }
}

function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** JSON does not escape base64, so its length is known before it is written. */
function sizeOf({ type, path, data }: InlineFile): number {
  return Buffer.byteLength(JSON.stringify({ type, path, data: '' })) + data.length
}

function tooLarge(path: string, ceiling: number): ServiceError {
  const message = `${path} is larger than the ${ceiling} bytes that fit one request; nothing of it was sent`
  return new ServiceError({ code: 'file_too_large', status: 0, message })
}
