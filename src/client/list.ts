import { Malformed } from '../core/wire.ts'
import type { Page } from '../core/resource.ts'
import type { Ids } from './discovery/parameters.ts'
import { asList, parsePage } from '../protocol/answers.ts'
import type { WholeName } from './discovery/whole.ts'
import type { CallOptions, PageQuery } from './request.ts'
import type { Reader } from './shape.ts'
import type { Request } from './call.ts'
import type { Transport } from './transport.ts'

/**
 * The entries of a list. Pages are read when they are needed; leaving the loop stops the paging. Every loop begins at
 * the start.
 */
export interface List<T> extends AsyncIterable<T> {
  /** One page, as requested. Pass `lastId` as `after` for the next. */
  page(): Promise<Page<T>>
}

interface Asked<T> {
  operation: WholeName
  ids?: Ids
  query?: PageQuery & NonNullable<Request['query']>
  read: Reader<T>
  /** The name of an entry, for errors. */
  what: string
}

/** `timeout` applies to each page. */
export function listOf<T>(transport: Transport, asked: Asked<T>, options: CallOptions | undefined): List<T> {
  const { operation, ids = {}, query = {}, read, what } = asked
  const readPage: Reader<Page<T>> = (value) =>
    parsePage(
      asList(value),
      (entry) => read(entry, what),
      // An unreadable entry is an error, because the caller would not notice that it is missing.
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
        // The same cursor twice would cause an endless loop.
        if (!hasMore || lastId === null || lastId === after) return
        after = lastId
      }
    },
  }
}
