import { crc32 } from 'node:zlib'

const SHARDS = 64

/** The shard of a session's hints, lanes and calls. */
export function shardOf(sessionId: string): number {
  return crc32(sessionId) % SHARDS
}
