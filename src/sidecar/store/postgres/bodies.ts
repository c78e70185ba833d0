/**
 * Octets of the database for each character of a body: at most 3, but for a character that it cannot store and that is
 * marked (text.ts).
 */
export const OCTETS = 3

/**
 * The rows of `select` (facts by `pos`) whose earlier bodies have less than `octets` together: at least one row. Each has
 * `octets`, those of the bodies up to its own: the last row has as many or more where rows were left out.
 *
 * A frame may have 16 MiB. The statement without this fetched 64 of them to deliver the first. The server knows the
 * length of a body without reading it.
 */
export function boundBodies(select: string, octets: string): string {
  return `SELECT * FROM (
      SELECT *, (sum(octet_length(body)) OVER (ORDER BY pos ROWS UNBOUNDED PRECEDING))::bigint AS octets
      FROM (${select}) AS unbounded) AS bounded
    WHERE octets - octet_length(body) < ${octets} ORDER BY pos`
}
