/**
 * Octets of the database for each character of a body: at most 3, but for a character that it cannot store and that is
 * marked (text.ts).
 */
export const OCTETS = 3

/** Of rows: the columns of their order, and an expression for the octets of one. */
interface Measured {
  order: string
  size: string
}

/**
 * The rows of `select` whose earlier rows have less than `limit` octets together: at least one row. Each has `octets`,
 * those up to its own: the last row has as many or more where rows were left out.
 */
export function boundRows(select: string, { order, size }: Measured, limit: number | string): string {
  return `SELECT * FROM (
      SELECT *, (sum(${size}) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING))::bigint AS octets
      FROM (${select}) AS unbounded) AS bounded
    WHERE octets - (${size}) < ${limit} ORDER BY ${order}`
}

/**
 * Facts by `pos`. A frame may have 16 MiB. The statement without this fetched 64 of them to deliver the first. The server
 * knows the length of a body without reading it.
 */
export function boundBodies(select: string, limit: number | string): string {
  return boundRows(select, { order: 'pos', size: 'octet_length(body)' }, limit)
}
