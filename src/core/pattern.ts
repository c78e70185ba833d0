/**
 * Selects the facts of a handler: `*` (everything), `turn.*` (a prefix up to a dot), or a whole type. Transient frames
 * go only to handlers that name their type in full.
 */
export interface EventPattern {
  wants(type: string): boolean
  wantsTransient(type: string): boolean
}

/** A pattern of fact types: `*`, a family such as `turn.*`, or a whole type. */
export const TYPE_PATTERN = '^(\\*|[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*(\\.\\*)?)$'

export function compilePatterns(patterns: readonly string[]): EventPattern {
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const prefixes = patterns.filter((pattern) => pattern.endsWith('.*')).map((pattern) => pattern.slice(0, -1))
  const everything = patterns.includes('*')
  return {
    wants: (type) => everything || exact.has(type) || prefixes.some((prefix) => type.startsWith(prefix)),
    wantsTransient: (type) => exact.has(type),
  }
}
