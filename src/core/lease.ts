/**
 * Replica A claims a lane and freezes, and B takes over the lane's shard: the ack that A writes when it wakes changes nothing.
 * A claimed item carries the lease under which it was claimed, and each write that ends a claim names this lease. A lease is
 * for one shard of the sessions, or for something that exists once per organization. SQLite has one lease for everything,
 * which ends with the process.
 */
export interface Lease {
  owner: string
  /** Rises with each new owner and is never given twice. */
  epoch: number
}
