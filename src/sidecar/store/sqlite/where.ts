/** A condition, and the values of its question marks. */
export type Condition = readonly [string, ...unknown[]]

/** The conditions that all hold, as text and values. Those with a value that is undefined are left out. */
export function where(conditions: readonly Condition[]): [text: string, values: unknown[]] {
  const used = conditions.filter(([, ...values]) => !values.includes(undefined))
  const text = used.length === 0 ? '' : `WHERE ${used.map(([condition]) => condition).join(' AND ')}`
  return [text, used.flatMap(([, ...values]) => values)]
}
