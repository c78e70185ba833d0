import { median } from '../bench/statistics.ts'

/** Theil and Sen's estimate: the median of the slopes between all pairs of points, which outliers do not move. */
export function slopeOf(points: readonly (readonly [x: number, y: number])[]): number {
  const slopes: number[] = []
  for (const [index, [x, y]] of points.entries())
    for (const [otherX, otherY] of points.slice(index + 1))
      if (otherX !== x) slopes.push((otherY - y) / (otherX - x))
  return slopes.length === 0 ? 0 : median(slopes)
}
