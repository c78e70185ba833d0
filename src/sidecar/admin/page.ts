import { Type, type Static, type TObject, type TProperties, type TSchema } from 'typebox'
import type { Listed } from '../../core/listed.ts'
import { asked, component, refTo, type Component } from './component.ts'
import { entryOf, type Held } from './entry.ts'
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

/** `usual`: the number of entries of a page if the request has no `limit`. */
export function limitOf(usual: number) {
  return {
    limit: Type.Integer({ minimum: 1, maximum: 100, default: usual, description: 'Entries of a page.' }),
  }
}

type Paging = typeof PAGING

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

interface List<Row, Entry extends TObject, Query extends TProperties> {
  path: string
  summary: string
  /** The name of the entries, in the plural. */
  of: string
  /** The schema of an entry. The value of its first field identifies the entry. */
  entry: Component<Entry>
  /** The query parameters other than `limit` and `after`. */
  query: Query
  show: (row: Row) => Held<Static<Entry>>
}

/** A route that answers with pages of a list. */
export function listRoute<Row, Entry extends TObject, Query extends TProperties>(
  { path, summary, of, entry, query, show }: List<Row, Entry, Query>,
  read: (query: Static<TObject<Paging & Query>>) => Listed<Row> | Promise<Listed<Row>>,
): Route {
  const [id = ''] = Object.keys(entry.schema.properties)
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
      const data = rows.map((row) => entryOf(entry, show(row)))
      return { object: 'list', data, has_more: more, last_id: data.at(-1)?.[id] ?? '' }
    },
  )
}

/** A page of a short list that is in memory. `after`: the name of the entry before the page. */
export function slice<T extends { name: string }>(
  rows: readonly T[],
  { limit, after }: { limit: number; after?: string | undefined },
): Listed<T> {
  const cursor = after === undefined ? -1 : rows.findIndex(({ name }) => name === after)
  if (after !== undefined && cursor === -1) return { rows: [], more: false }
  const begin = cursor + 1
  return { rows: rows.slice(begin, begin + limit), more: rows.length > begin + limit }
}
