/** In `file` below src, `find` becomes `put`. `find` must be there exactly once. */
export type Edit = readonly [file: string, find: string, put: string]

/** A planted bug, which the simulation must see, or a test where it has one. */
export interface Mutant {
  name: string
  edits: readonly Edit[]
  test?: NamedTest
  /** Processes on one store that show it, in place of the number that a seed draws. */
  replicas?: number
}

/** What must fail with a bug that the simulation cannot see, and pass without it. */
export interface NamedTest {
  /** Below test. */
  file: string
  /** Part of the names of its tests, as a regular expression. */
  only?: string
  /** Its types are checked, by the compiler: it is not run. */
  isTypes?: boolean
}

export const mutant = (name: string, ...edit: Edit): Mutant => ({ name, edits: [edit] })

/** Seen by a test alone. */
export const tested = (test: NamedTest, name: string, ...edit: Edit): Mutant => ({
  name,
  edits: [edit],
  test,
})

/** Seen with two processes on one store. */
export const several = (name: string, ...edit: Edit): Mutant => ({ name, edits: [edit], replicas: 2 })
