import { Type, type Static } from 'typebox'

/** Paging of a list that can be ordered (rules LIM-66 to LIM-68): sessions, turns and items. */
export const orderedPage = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Rows to answer with.' }),
    ),
    order: Type.Optional(Type.Enum(['asc', 'desc'], { default: 'desc' })),
    after: Type.Optional(Type.String({ description: 'The `last_id` of the page before.' })),
  },
  { additionalProperties: false },
)

/** Paging of the lists that take no `order`. */
export const plainPage = Type.Object(
  { limit: orderedPage.properties.limit, after: orderedPage.properties.after },
  { additionalProperties: false },
)

type PageQuery = Static<typeof orderedPage>

export interface Page<Row> {
  rows: Row[]
  hasMore: boolean
}

const DEFAULT_LIMIT = 20

/**
 * One page of `rows`, which are in ascending order of their sort key. `place` finds the row that an `after` names, -1
 * if there is none: then the page is empty. `matches` filters after that, so that a row that no longer matches is still a
 * cursor.
 */
export function pageOf<Row>(
  rows: readonly Row[],
  query: PageQuery,
  place: (id: string) => number,
  matches: (row: Row) => boolean = () => true,
): Page<Row> {
  const limit = query.limit ?? DEFAULT_LIMIT
  const step = query.order === 'asc' ? 1 : -1
  let at = step === 1 ? 0 : rows.length - 1
  if (query.after !== undefined) {
    const placed = place(query.after)
    if (placed === -1) return { rows: [], hasMore: false }
    at = placed + step
  }
  const page: Row[] = []
  for (let row = rows[at]; row !== undefined; row = rows[(at += step)]) {
    if (!matches(row)) continue
    if (page.length === limit) return { rows: page, hasMore: true }
    page.push(row)
  }
  return { rows: page, hasMore: false }
}

/** The place of a row by its `id`. */
export function placeById(rows: readonly { id: string }[]): (id: string) => number {
  return (id) => rows.findIndex((row) => row.id === id)
}
