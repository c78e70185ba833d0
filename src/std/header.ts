import { hash } from 'node:crypto'

/** Characters of a header's value that every server takes. */
const LENGTH = 255

/** Ids are opaque: one that no header can carry is sent escaped, and one too long as its digest, lest two be cut to one. */
export function headerSafe(id: string): string {
  const escaped = /^[\x21-\x24\x26-\x7e]+$/.test(id) ? id : encodeURIComponent(id.toWellFormed())
  return escaped.length <= LENGTH ? escaped : hash('sha256', id, 'hex')
}
