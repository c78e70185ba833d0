import fs from 'node:fs'
import { promisify } from 'node:util'
import { codeOf, messageOf } from '../../std/errors.ts'
import { checks } from './checks.ts'
import type { Config, SecretPart } from './config.ts'

/** Made from node:fs, because node:fs/promises also loads file watchers and a line editor, which delays each start. */
const [open, fstat, read, close] = [
  promisify(fs.open),
  promisify(fs.fstat),
  promisify(fs.read),
  promisify(fs.close),
]

/** Bytes. A secret has fewer than a hundred, so a longer file holds something else. */
const MAX_SECRET_FILE = 64 * 1024

/** @throws {Error} that describes the fault of the file, without its content. */
async function readPart(part: SecretPart): Promise<string[]> {
  if (part.kind === 'value') return [part.value]
  const words = (await readSmallFile(part.file, MAX_SECRET_FILE))
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
  if (words.length === 0) throw new Error(`${part.file} is empty`)
  if (words.length > 1 && !part.lines) throw new Error(`${part.file} must hold one line`)
  const check = part.format === 'any' ? undefined : checks[part.format]
  for (const word of words) {
    const fault = check?.(word) ?? null
    if (fault !== null) throw new Error(`the content of ${part.file} ${fault}`)
  }
  return words
}

export async function readParts(parts: readonly SecretPart[]): Promise<string[]> {
  const read = await Promise.all(parts.map(readPart))
  return read.flat()
}

/**
 * The text of a file of at most `limit` bytes.
 * @throws {Error} with a message for people: missing, no permission, a directory, too long, not UTF-8.
 */
export async function readSmallFile(file: string, limit: number): Promise<string> {
  try {
    const opened = await open(file, 'r')
    try {
      if ((await fstat(opened)).isDirectory()) throw new Error('is a directory')
      // One byte more than `limit` is read, to see whether the file is longer. Its size cannot answer that: a device or
      // a pipe has none.
      const { buffer, bytesRead } = await fill(opened, Buffer.alloc(limit + 1))
      if (bytesRead > limit) throw new Error(`is longer than ${limit} bytes`)
      return decode(buffer.subarray(0, bytesRead))
    } finally {
      await close(opened)
    }
  } catch (error) {
    throw new Error(`${file} ${reasonOf(error)}`, { cause: error })
  }
}

async function fill(opened: number, buffer: Buffer): Promise<{ buffer: Buffer; bytesRead: number }> {
  let filled = 0
  while (filled < buffer.length) {
    const { bytesRead } = await read(opened, buffer, filled, buffer.length - filled, null)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return { buffer, bytesRead: filled }
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new Error('is not UTF-8 text', { cause: error })
  }
}

const DENIED = `cannot be read: permission denied for user ${process.getuid?.()}; let this user read it, or run as its owner`

const REASONS: Record<string, string> = {
  ENOENT: 'does not exist',
  EACCES: DENIED,
  EPERM: DENIED,
  EISDIR: 'is a directory',
  ENOTDIR: 'does not exist: a part of its path is not a directory',
  ELOOP: 'cannot be read: its symbolic links form a loop',
  ENAMETOOLONG: 'does not exist: the name is too long',
}

function reasonOf(error: unknown): string {
  return REASONS[codeOf(error)] ?? messageOf(error)
}

/** @param error the error of `readSmallFile`. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && codeOf(error.cause) === 'ENOENT'
}

/** Every secret of the configuration, to be withheld from output for people. */
export function secretsIn({ service, admin, webhooks, store, handlers, tools }: Config): string[] {
  const targets = [...handlers, ...tools].flatMap(({ target }) =>
    target.kind === 'http' ? target.secrets : [],
  )
  const password = store.url.kind === 'postgres' ? store.url.password : null
  return [service.token, admin.token, ...webhooks.secrets, password, ...targets].filter((one) => one !== null)
}
