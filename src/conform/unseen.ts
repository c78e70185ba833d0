export const UNSEEN: readonly (readonly [string, readonly string[]])[] = []
