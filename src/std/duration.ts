const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

export const DURATION_PATTERN = '^(0|[0-9]+(\\.[0-9]+)?(ms|s|m|h|d))$'

/** `250ms`, `30s`, `5m`, `9h`, `7d` or `0` in milliseconds; null when it is none of these. */
export function parseDuration(text: string): number | null {
  if (text === '0') return 0
  const match = /^([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)$/.exec(text)
  if (match === null) return null
  return Math.round(Number(match[1]) * (UNITS[match[2] as string] as number))
}

/** Milliseconds in the largest unit without a fraction. */
export function formatDuration(ms: number): string {
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    const size = UNITS[unit] as number
    if (ms !== 0 && ms % size === 0) return `${ms / size}${unit}`
  }
  return `${ms}ms`
}
