import type { LedgerView } from '../../../src/emulator/index.ts'
import type { Pages } from '../books.ts'
import type { World } from '../world.ts'

/** What a round must have to be judged, on whichever store, with however many processes. */
export type Round = Pick<
  World,
  | 'app'
  | 'dead'
  | 'gaps'
  | 'gateway'
  | 'load'
  | 'mood'
  | 'service'
  | 'tally'
  | 'violations'
  | 'metrics'
  | 'pages'
  | 'pending'
> & {
  /** The process that is asked. */
  sidecar: Pick<World['sidecar'], 'ask' | 'list'>
  /** Files of the logs of all processes. */
  logs: readonly string[]
}

/** Everything that is known of a round at one moment, by everybody who took part. */
export interface Evidence extends Pages {
  world: Round
  ledger: LedgerView
  /** `/metrics` as text, of all processes that live. */
  metrics: string
}

/**
 * Asks the service, the program and its database. @throws {Error} while one of them is unreachable.
 */
export async function gather(world: Round): Promise<Evidence> {
  const ledger = await world.service.ledger()
  const metrics = await world.metrics()
  return { world, ledger, metrics, ...(await world.pages()) }
}
