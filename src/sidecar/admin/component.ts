import { Type, type Static, type TObject, type TProperties, type TSchema, type TUnsafe } from 'typebox'

/** A schema with a name: an entry of the OpenAPI document's `components.schemas`. */
export interface Component<S extends TSchema = TSchema> {
  name: string
  schema: S
  /** Other components that the schema refers to. */
  parts: readonly Component[]
}

export function component<S extends TSchema>(
  name: string,
  schema: S,
  parts: readonly Component[] = [],
): Component<S> {
  return { name, schema, parts }
}

/** A reference by which another schema includes a component. */
export function refTo<S extends TSchema>({ name }: Component<S>): TUnsafe<Static<S>> {
  return Type.Unsafe<Static<S>>({ $ref: `#/components/schemas/${name}` })
}

export function nullable<S extends TSchema>(schema: S, description?: string) {
  return Type.Union([schema, Type.Null()], description === undefined ? {} : { description })
}

/** Milliseconds since the epoch. */
export function time(description?: string) {
  return Type.Integer({ description: description ?? 'Milliseconds since the epoch.' })
}

/** A resource of the service, unchanged, unknown fields included. */
export function asGiven(description: string) {
  return Type.Record(Type.String(), Type.Unknown(), { description })
}

export function oneOf<const W extends string>(words: readonly W[], options: object = {}): TUnsafe<W> {
  return Type.Unsafe<W>({ type: 'string', enum: [...words], ...options })
}

/** The allowed keys of a request. A key with a `default` may be omitted, and is always present after the check. */
export function asked<P extends TProperties>(properties: P, options: object = {}): TObject<P> {
  const schema = Type.Object(properties, { additionalProperties: false, ...options })
  const required = Object.entries(properties).flatMap(([key, property]) =>
    'default' in property || Type.IsOptional(property) ? [] : [key],
  )
  return Object.assign(schema, { required })
}
