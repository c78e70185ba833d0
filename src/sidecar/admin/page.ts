import { Type, type Static, type TObject, type TProperties, type TSchema } from 'typebox'
import type { Listed } from '../../core/listed.ts'
import { asked, component, refTo, type Component } from './component.ts'
import { route, type Route } from './route.ts'

/** Like the pages of the service: a `limit` above the maximum is refused, not clamped (rule LIM-03). */
const PAGING = {
  ...limitOf(20),
  after: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 512,
      description: 'The last_id of the page before. An unknown one gives an empty page.',
    }),
  ),
}

/** `usual`: entries of a page without `limit`. */
export function limitOf(usual: number) {
  return {
    limit: Type.Integer({ minimum: 1, maximum: 100, default: usual, description: 'Entries of a page.' }),
  }
}

type Paging = typeof PAGING

interface Page<T> {
  object: 'list'
  data: T[]
  has_more: boolean
  /** Empty on an empty page. */
  last_id: string
}

function pageOf<S extends TSchema>(entry: Component<S>): Component {
  return component(
    `${entry.name}List`,
    Type.Object({
      object: Type.Literal('list'),
      data: Type.Array(refTo(entry)),
      has_more: Type.Boolean({ description: 'There is at least one entry after last_id.' }),
      last_id: Type.String({ description: 'Give it as `after` for the next page. Empty on an empty page.' }),
    }),
    [entry],
  )
}

interface List<Row, Entry extends TSchema, Query extends TProperties> {
  path: string
  summary: string
  /** The name of the entries, in the plural. */
  of: string
  entry: Component<Entry>
  /** Beside `limit` and `after`. */
  query: Query
  idOf: (row: Row) => string
  show: (row: Row) => Static<Entry>
}

/** A route that answers with pages of a list. */
export function listRoute<Row, Entry extends TSchema, Query extends TProperties>(
  { path, summary, of, entry, query, idOf, show }: List<Row, Entry, Query>,
  read: (query: Static<TObject<Paging & Query>>) => Listed<Row> | Promise<Listed<Row>>,
): Route {
  return route<TObject<Paging & Query>>(
    {
      method: 'GET',
      path,
      summary,
      query: asked({ ...PAGING, ...query }),
      success: { status: 200, description: `A page of ${of}.`, content: pageOf(entry) },
    },
    async (input) => {
      const { rows, more } = await read(input.query)
      const last = rows.at(-1)
      const page: Page<Static<Entry>> = {
        object: 'list',
        data: rows.map(show),
        has_more: more,
        last_id: last === undefined ? '' : idOf(last),
      }
      return page
    },
  )
}

/** The entries of a short list in memory after `after`. */
export function slice<T>(
  rows: readonly T[],
  { limit, after }: { limit: number; after?: string | undefined },
  idOf: (row: T) => string,
): Listed<T> {
  const cursor = after === undefined ? -1 : rows.findIndex((row) => idOf(row) === after)
  if (after !== undefined && cursor === -1) return { rows: [], more: false }
  const begin = cursor + 1
  return { rows: rows.slice(begin, begin + limit), more: rows.length > begin + limit }
}
