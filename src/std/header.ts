import { hash } from 'node:crypto'

/** Characters of a header's value that every server accepts. */
const LENGTH = 255

/**
 * Ids are opaque. An id that is invalid in a header is sent escaped. One that is too long is sent
 * as its digest, because two cut ids could be equal.
 */
export function headerSafe(id: string): string {
  const escaped = /^[\x21-\x24\x26-\x7e]+$/.test(id) ? id : encodeURIComponent(id.toWellFormed())
  return escaped.length <= LENGTH ? escaped : hash('sha256', id, 'hex')
}
