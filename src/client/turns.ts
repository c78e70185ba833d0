import { ServiceError } from '../core/errors.ts'
import { isSettled } from '../core/resource.ts'
import { listOf } from './list.ts'
import type { List } from './list.ts'
import { NO_LIMIT, poll } from './poll.ts'
import type { ActOptions, CallOptions, OrderedQuery } from './request.ts'
import { readItem, readTurn } from './resource.ts'
import type { Item, Turn } from './resource.ts'
import type { Operation } from './call.ts'
import type { Transport } from './transport.ts'

export interface Turns {
  list(sessionId: string, query?: OrderedQuery, options?: CallOptions): List<Turn>
  /** Uses the list of turns if the service has no route for a single turn. */
  get(sessionId: string, turnId: string, options?: CallOptions): Promise<Turn>
  /** Stops a running turn. Its final status is one that the interface does not name. */
  cancel(sessionId: string, turnId: string, options?: ActOptions): Promise<void>
  /**
   * Reads a turn repeatedly until it is settled: it has ended, and its artifacts are final. There is no time limit
   * unless `timeout` is given.
   */
  wait(sessionId: string, turnId: string, options?: WaitOptions): Promise<Turn>
}

export interface WaitOptions extends CallOptions {
  /** Milliseconds between the first reads; later intervals are up to ten times longer. Default 500. */
  interval?: number
}

export interface Items {
  /** The transcript. `detail.event` distinguishes a tool call from its result. */
  list(sessionId: string, query?: OrderedQuery, options?: CallOptions): List<Item>
}

const INTERVAL = 500

export function turnsOf(transport: Transport): Turns {
  const turnList = (session: string, query: OrderedQuery, options?: CallOptions): List<Turn> =>
    listOf(
      transport,
      { operation: 'listTurns', ids: { session }, query: { ...query }, read: readTurn, what: 'a turn' },
      options,
    )

  async function listed(session: string, turn: string, options: CallOptions): Promise<Turn> {
    for await (const one of turnList(session, { limit: 100 }, options)) if (one.id === turn) return one
    throw new ServiceError({
      code: 'not_found',
      status: 404,
      message: `no turn ${turn} is in the list of turns`,
    })
  }

  async function read(operation: Operation, session: string, turn: string): Promise<Turn> {
    const single = transport.found.routes.readTurn.found
    if (single) return transport.read(operation, { ids: { session, turn } }, readTurn, 'a turn')
    return listed(session, turn, { signal: operation.signal })
  }

  return {
    list: (session, query = {}, options) => turnList(session, query, options),
    get: (session, turn, options) =>
      transport.within('readTurn', options, (operation) => read(operation, session, turn)),
    async cancel(session, turn, options) {
      const request = { ids: { session, turn }, act: options ?? true } as const
      await transport.within('cancelTurn', options, (operation) => transport.send(operation, request))
    },
    wait: (session, turn, { interval = INTERVAL, timeout = NO_LIMIT, ...options } = {}) =>
      transport.within('readTurn', { timeout, ...options }, (operation) =>
        poll(transport, operation, interval, async () => {
          const found = await read(operation, session, turn)
          const { status, completed_at: completedAt, artifacts } = found
          return isSettled({ status, completedAt, artifacts }) ? found : null
        }),
      ),
  }
}

export function itemsOf(transport: Transport): Items {
  return {
    list: (session, query = {}, options) =>
      listOf(
        transport,
        { operation: 'listItems', ids: { session }, query: { ...query }, read: readItem, what: 'an item' },
        options,
      ),
  }
}
