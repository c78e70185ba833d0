/** In `file` below src, `find` becomes `put`. `find` must be there exactly once. */
export type Edit = readonly [file: string, find: string, put: string]

/** A planted bug. */
export interface Mutant {
  name: string
  edits: readonly Edit[]
}

export const mutant = (name: string, ...edit: Edit): Mutant => ({ name, edits: [edit] })
