/** Bytes of a request's body, and of the one that creates a session (interface.md, Limits). */
export const BODY_MAX = 1024 * 1024
export const CREATE_BODY_MAX = 16 * BODY_MAX
/** Characters of an idempotency value. */
export const KEY_MAX = 255
