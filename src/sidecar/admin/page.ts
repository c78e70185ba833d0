import { Type, type Static, type TSchema } from 'typebox'
import type { Listed } from '../../core/listed.ts'
import { asked, component, refTo, type Component } from './component.ts'

/** Like the pages of the service: a `limit` above the maximum is refused, not clamped (rule LIM-03). */
export const PAGING = {
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Entries of a page.' }),
  after: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 512,
      description: 'The last_id of the page before. An unknown one gives an empty page.',
    }),
  ),
}

export interface Page<T> {
  object: 'list'
  data: T[]
  has_more: boolean
  /** Empty on an empty page. */
  last_id: string
}

export function pageOf<S extends TSchema>(entry: Component<S>): Component {
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

export function page<Row, T>(
  { rows, more }: Listed<Row>,
  idOf: (row: Row) => string,
  show: (row: Row) => T,
): Page<T> {
  const last = rows.at(-1)
  return {
    object: 'list',
    data: rows.map(show),
    has_more: more,
    last_id: last === undefined ? '' : idOf(last),
  }
}

/** The entries of a short list in memory after `after`. */
export function slice<T>(
  rows: readonly T[],
  { limit, after }: Static<ReturnType<typeof pagingQuery>>,
  idOf: (row: T) => string,
): Listed<T> {
  const cursor = after === undefined ? -1 : rows.findIndex((row) => idOf(row) === after)
  if (after !== undefined && cursor === -1) return { rows: [], more: false }
  const begin = cursor + 1
  return { rows: rows.slice(begin, begin + limit), more: rows.length > begin + limit }
}

/** `usual`: entries of a page without `limit`. */
export function pagingQuery(usual = 20) {
  return asked({ ...PAGING, limit: Type.Integer({ ...PAGING.limit, default: usual }) })
}
