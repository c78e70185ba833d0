import { randomBytes } from 'node:crypto'
import { extname } from 'node:path/posix'

/** A file under `/workspace/outputs` as it was when its turn settled; outlives the workspace. */
export interface Artifact {
  readonly id: string
  readonly sessionId: string
  readonly turnId: string
  /** Relative to the workspace directory. */
  readonly path: string
  readonly contentType: string
  readonly bytes: Uint8Array
  readonly createdAt: number
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.txt': 'text/plain; charset=utf-8',
  '.md': 'text/markdown; charset=utf-8',
  '.csv': 'text/csv; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.json': 'application/json',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
}

export function newArtifact(of: Omit<Artifact, 'id' | 'contentType'>): Artifact {
  return {
    ...of,
    id: `art_${randomBytes(12).toString('hex')}`,
    contentType: CONTENT_TYPES[extname(of.path).toLowerCase()] ?? 'application/octet-stream',
  }
}
