const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** Milliseconds in `250ms`, `30s`, `5m`, `2h` or `7d`; undefined for anything else. */
export function readDuration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim())
  const unit = UNIT_MS[match?.[2] ?? '']
  return unit === undefined ? undefined : Number(match?.[1]) * unit
}
