import { posix } from 'node:path'
import type { Limits } from '../limits.ts'
import type { FileEntryType } from '../profile/details.ts'
import { invalid } from '../refusal.ts'
import type { SeedFile } from '../session.ts'

interface FileEntry {
  type: FileEntryType
  path: string
  data: string
}

/**
 * The files of a request, decoded. Sizes are those of the decoded bytes; nothing is truncated.
 * @throws {Refusal} 400 for a path outside the workspace, data that is not base64, or a ceiling.
 */
export function readFiles(entries: readonly FileEntry[], limits: Limits): SeedFile[] {
  if (entries.length > limits.files) throw invalid(`at most ${limits.files} files fit one request`)
  const files = entries.map((entry) => ({ path: insideWorkspace(entry.path), bytes: decode(entry) }))
  const large = files.find((file) => file.bytes.length > limits.fileBytes)
  if (large !== undefined) throw invalid(`${large.path} is larger than ${limits.fileBytes} bytes`)
  const total = files.reduce((sum, file) => sum + file.bytes.length, 0)
  if (total > limits.filesTotalBytes)
    throw invalid(`the files are larger than ${limits.filesTotalBytes} bytes together`)
  return files
}

/** The path relative to the workspace directory. @throws {Refusal} 400 when it leads out of it. */
export function insideWorkspace(path: string): string {
  const clean = posix.normalize(path.replace(/^\/workspace\//, ''))
  if (clean === '.' || clean.startsWith('..') || clean.startsWith('/') || clean.includes('\0')) {
    throw invalid(`${JSON.stringify(path)} is not a path inside the workspace directory`)
  }
  return clean
}

function decode({ type, path, data }: FileEntry): Buffer {
  if (type === 'text') return Buffer.from(data)
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(data) || data.length % 4 !== 0) {
    throw invalid(`the data of ${JSON.stringify(path)} is not base64`)
  }
  return Buffer.from(data, 'base64')
}
