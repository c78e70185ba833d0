/**
 * Replica A claims a lane and freezes, and B takes over the lane's shard: the ack that A writes when it wakes changes nothing.
 * What is claimed carries the lease under which it was claimed, and each write that settles a claim names it. A lease is of
 * one shard of the sessions, or of what is one per organization. SQLite has one of everything, which ends with the process.
 */
export interface Lease {
  owner: string
  /** Rises with each new owner and is never given twice. */
  epoch: number
}
