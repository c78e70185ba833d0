/** A page, which may be shorter than what was asked for where its rows are large. `more`: there is at least one behind it. */
export interface Listed<T> {
  rows: T[]
  more: boolean
}
