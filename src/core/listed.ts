/** A page, which may be shorter than its limit if its rows are large. `more`: at least one entry follows. */
export interface Listed<T> {
  rows: T[]
  more: boolean
}
