import { where as whereWithMarks, type Condition } from '../sqlite/listing.ts'
import type { Value } from './database.ts'

/**
 * As in SQLite, with numbers for the question marks. `before`: the values of the statement so far; `values` begins with
 * them.
 */
export function where(
  conditions: readonly Condition<Value>[],
  before: readonly Value[] = [],
): { text: string; values: Value[] } {
  const [text, values] = whereWithMarks(conditions)
  let last = before.length
  return { text: text.replaceAll('?', () => `$${++last}`), values: [...before, ...values] }
}
