/** Something that must never be, by the invariant that it breaks. */
export interface Fault {
  invariant: string
  message: string
}
