/**
 * A frame names a session by an id of 5,000 characters: no index of PostgreSQL takes it, so each commit of that frame would
 * fail, and the stream would not get beyond it. No id of the service, and no status, may have more bytes than this, as JSON. One
 * index has both an id and a status, and takes 2,704 bytes.
 */
export const ID_BYTES = 1000

/** Bytes of one UTF-16 unit in JSON, at most: a NUL is `\u0000`. */
const UNIT = 6

/** Whether each index takes the id. */
export function isShort(id: string): boolean {
  return id.length * UNIT <= ID_BYTES || Buffer.byteLength(JSON.stringify(id)) <= ID_BYTES
}
