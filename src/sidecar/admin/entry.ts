import type { Static, TObject } from 'typebox'

type Camel<K extends string> = K extends `${infer Word}_${infer Rest}`
  ? `${Word}${Capitalize<Camel<Rest>>}`
  : K

/** An entry of the API with the names of our records: `call_id` is `callId`. */
export type Held<T> = { [K in keyof T & string as Camel<K>]: T[K] }

/**
 * Takes the fields of an entry from a record, which may have more. If the schema allows additional properties, the
 * entry is the record itself.
 */
export function entryOf<S extends TObject>({ schema }: { schema: S }, record: Held<Static<S>>): Static<S> {
  if ('additionalProperties' in schema && schema.additionalProperties === true) return record as Static<S>
  const held = new Map<string, unknown>(Object.entries(record))
  const names = Object.keys(schema.properties)
  return Object.fromEntries(names.map((name) => [name, held.get(camelOf(name))])) as Static<S>
}

function camelOf(name: string): string {
  return name.replaceAll(/_(\w)/g, (_all, letter: string) => letter.toUpperCase())
}
