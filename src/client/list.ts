import { Malformed } from '../core/wire.ts'
import type { Page } from '../core/resource.ts'
import type { Ids } from './discovery/path.ts'
import { asList, parsePage } from '../protocol/answers.ts'
import type { WholeName } from './discovery/whole.ts'
import type { CallOptions, PageQuery } from './request.ts'
import type { Reader } from './shape.ts'
import type { Request } from './call.ts'
import type { Transport } from './transport.ts'

/**
 * Entries of a list, read page by page as they are wanted; breaking off stops the paging. Every loop over it begins
 * anew.
 */
export interface List<T> extends AsyncIterable<T> {
  /** One page: the one that was asked for. `lastId` leads to the next, as `after`. */
  page(): Promise<Page<T>>
}

interface Asked<T> {
  operation: WholeName
  ids?: Ids
  query?: PageQuery & NonNullable<Request['query']>
  read: Reader<T>
  /** What an entry is, for errors. */
  what: string
}

/** `timeout` counts for each page. */
export function listOf<T>(transport: Transport, asked: Asked<T>, options: CallOptions | undefined): List<T> {
  const { operation, ids = {}, query = {}, read, what } = asked
  const readPage: Reader<Page<T>> = (value) =>
    parsePage(
      asList(value),
      (entry) => read(entry, what),
      // An entry that is left out would be missed by nobody.
      (fault: Malformed) => {
        throw fault
      },
    )
  const pageAfter = (after: string | undefined): Promise<Page<T>> =>
    transport.call(operation, { ids, query: { ...query, after } }, options, readPage, 'a list')
  return {
    page: () => pageAfter(query.after),
    async *[Symbol.asyncIterator]() {
      let after = query.after
      for (;;) {
        const { data, hasMore, lastId } = await pageAfter(after)
        yield* data
        // The same place again would lead round for ever.
        if (!hasMore || lastId === null || lastId === after) return
        after = lastId
      }
    },
  }
}
