import type { Lane, PendingDelivery, Ack } from '../../src/core/delivery.ts'
import type { Committed, Store } from '../../src/core/store.ts'

export const ATTEMPT = { at: 1, status: 200, ms: 1 }
export const seqs = (deliveries: readonly PendingDelivery[]) => deliveries.map(({ fact }) => fact.seq)

export async function laneOf(store: Store): Promise<Lane> {
  const [lane] = await store.lanes.claim({ handler: 'app', lanes: 1 })
  if (lane === undefined) throw new Error('no lane is due')
  return lane
}

export const read = (store: Store, lane: Lane) =>
  store.lanes.read(lane, 0, 100, 1e6).then(({ deliveries }) => deliveries)

export function acknowledge(store: Store, acks: () => readonly Ack[]): Promise<Committed> {
  return store.log.commit({ acks })
}

export function ack(lane: Lane, { fact, attempts }: PendingDelivery, result: Ack['result']): Ack {
  return { lane, pos: fact.pos, result, attempts: attempts + 1, attempt: ATTEMPT, after: null }
}
