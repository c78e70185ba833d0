/** The middle of `values`, or the mean of the two in the middle; NaN of none. */
export function median(values: readonly number[]): number {
  return percentile(values, 50)
}

/** The value that `percent` of `values` do not exceed, interpolated between neighbours. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const place = ((sorted.length - 1) * percent) / 100
  const below = sorted[Math.floor(place)] ?? Number.NaN
  const above = sorted[Math.ceil(place)] ?? Number.NaN
  return below + (above - below) * (place - Math.floor(place))
}
