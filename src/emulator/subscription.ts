/** The webhook addresses of an organization. */
export interface Subscription {
  readonly id: string
  readonly url: string
  readonly events: readonly string[]
  readonly secret: string
  readonly createdAt: number
  active: boolean
  /** Deliveries that died since the last one that arrived. */
  deadInARow: number
}
