import type { Value } from './database.ts'

/** A condition with a `?` for each of its values. */
type Condition = readonly [string, ...(Value | undefined)[]]

/**
 * The conditions that all hold. Those with a value that is undefined are left out. `before`: the values of the statement so
 * far; `values` begins with them.
 */
export function where(
  conditions: readonly Condition[],
  before: readonly Value[] = [],
): { text: string; values: Value[] } {
  const values = [...before]
  const texts: string[] = []
  for (const [condition, ...given] of conditions) {
    if (given.includes(undefined)) continue
    texts.push(condition.replaceAll('?', () => `$${values.push(given.shift() ?? null)}`))
  }
  return { text: texts.length === 0 ? '' : `WHERE ${texts.join(' AND ')}`, values }
}
