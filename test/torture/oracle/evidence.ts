import type { LedgerView } from '../../../src/emulator/index.ts'
import { Books } from '../books.ts'
import type { World } from '../world.ts'

/** Everything that is known of a round at one moment, by everybody who took part. */
export interface Evidence {
  world: World
  ledger: LedgerView
  facts: ReturnType<Books['facts']>
  deliveries: ReturnType<Books['deliveries']>
  calls: ReturnType<Books['calls']>
  sessions: ReturnType<Books['sessions']>
  turns: ReturnType<Books['turns']>
  openActions: ReturnType<Books['openActions']>
  webhookSecrets: ReturnType<Books['webhookSecrets']>
  /** `/metrics` as text. */
  metrics: string
}

/**
 * Asks the service, the program and its database. @throws {Error} while one of them is unreachable.
 */
export async function gather(world: World): Promise<Evidence> {
  const ledger = await world.service.ledger()
  const metrics = (await world.sidecar.ask('GET', '/metrics')).text
  using books = new Books(world.store)
  return {
    world,
    ledger,
    facts: books.facts(),
    deliveries: books.deliveries(),
    calls: books.calls(),
    sessions: books.sessions(),
    turns: books.turns(),
    openActions: books.openActions(),
    webhookSecrets: books.webhookSecrets(),
    metrics,
  }
}
