const PREFIX = 'evt_t_'

/** The id of a transient event, never used again. It is shorter than an id with a digest, so the two never collide. */
export function transientId(at: number, nth: number): string {
  return `${PREFIX}${at.toString(36)}_${nth.toString(36)}`
}

const TRANSIENT_ID = /^evt_t_[0-9a-z]{1,9}_[0-9a-z]{1,9}$/

export function isTransientId(id: string): boolean {
  return TRANSIENT_ID.test(id)
}
