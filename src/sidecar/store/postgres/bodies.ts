/** The most octets of a character in a body, of those that `length` of a text counts. */
export const OCTETS = 3

/**
 * The rows of `select` (facts by `pos`) whose earlier bodies have less than `octets` together: at least one row.
 *
 * A frame may have 16 MiB. The statement without this fetched 64 of them to deliver the first. The server knows the
 * length of a body without reading it.
 */
export function boundBodies(select: string, octets: string): string {
  return `SELECT * FROM (
      SELECT *, sum(octet_length(body)) OVER (ORDER BY pos ROWS UNBOUNDED PRECEDING) - octet_length(body) AS before
      FROM (${select}) AS unbounded) AS bounded
    WHERE before < ${octets} ORDER BY pos`
}
