/** A webhook address of the organization. */
export interface Subscription {
  readonly id: string
  readonly url: string
  readonly events: readonly string[]
  readonly secret: string
  readonly createdAt: number
  active: boolean
  /** Dead deliveries since the last successful one. */
  deadInARow: number
}
