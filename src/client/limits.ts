/** Bytes of a request's body, and of the one that creates a session (rules LIM-01, LIM-02). */
export const BODY_MAX = 1024 * 1024
export const CREATE_BODY_MAX = 16 * BODY_MAX
/** Characters of an idempotency value (rule LIM-20). */
export const KEY_MAX = 255
