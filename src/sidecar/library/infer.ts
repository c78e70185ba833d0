/**
 * The TypeScript type of the values that a JSON Schema accepts, for a schema that is written as a literal. Each keyword
 * of JSON Schema narrows what the others accept. A keyword that is not supported here therefore makes the type too
 * wide, never wrong. A part that cannot be inferred is `unknown`.
 */
export type FromSchema<S> = S extends false
  ? never
  : S extends object
    ? Flat<Typed<S> & Listed<S> & Either<S, 'anyOf'> & Either<S, 'oneOf'> & Every<S>>
    : unknown

/** An intersection of objects as one object, because messages of the compiler and editors show it more plainly. */
type Flat<T> = T extends readonly unknown[] ? T : T extends object ? { [Key in keyof T]: T[Key] } : T

/**
 * What `type` accepts, narrowed by the keywords of that type, such as `properties` of an object. Without `type` the
 * result is `unknown`: a schema with `properties` alone also accepts a number.
 */
type Typed<S> = S extends { readonly type: infer Names }
  ? (Names extends readonly (infer Name)[] ? OfType<S, Name> : OfType<S, Names>) | Nullable<S>
  : unknown

/** `nullable` of OpenAPI, which ajv supports too when it checks the arguments. */
type Nullable<S> = S extends { readonly nullable: infer Flag } ? (Flag extends false ? never : null) : never

type OfType<S, Name> = Name extends 'string'
  ? string
  : Name extends 'number' | 'integer'
    ? number
    : Name extends 'boolean'
      ? boolean
      : Name extends 'null'
        ? null
        : Name extends 'array'
          ? OfArray<S>
          : Name extends 'object'
            ? Known<PropertiesOf<S>, RequiredOf<S>> & Further<S>
            : unknown

type Listed<S> = (S extends { readonly enum: readonly (infer Value)[] } ? Value : unknown) &
  (S extends { readonly const: infer Value } ? Value : unknown)

type Either<S, Keyword extends 'anyOf' | 'oneOf'> = S extends { readonly [Each in Keyword]: infer Branches }
  ? Branches extends readonly unknown[]
    ? FromSchema<Branches[number]>
    : unknown
  : unknown

type Every<S> = S extends { readonly allOf: infer Branches } ? EveryOf<Branches> : unknown

type EveryOf<Branches> = Branches extends readonly [infer First, ...infer Rest]
  ? FromSchema<First> & EveryOf<Rest>
  : unknown

/** Tuples are not inferred: `prefixItems` means something in 2020-12 only, an array of `items` in draft-07 only. */
type OfArray<S> = S extends { readonly prefixItems: unknown }
  ? unknown[]
  : S extends { readonly items: infer Items }
    ? Items extends readonly unknown[]
      ? unknown[]
      : FromSchema<Items>[]
    : unknown[]

type PropertiesOf<S> = S extends { readonly properties: infer Properties }
  ? string extends keyof Properties
    ? unknown
    : Properties
  : unknown

/** If `required` is a `string[]` and no literal, the compiler does not know its names. */
type RequiredOf<S> = S extends { readonly required: readonly (infer Name)[] }
  ? Name extends string
    ? string extends Name
      ? never
      : Name
    : never
  : never

type Known<Properties, Required extends string> = {
  -readonly [Name in keyof Properties as Name extends Required ? Name : never]: FromSchema<Properties[Name]>
} & {
  -readonly [Name in keyof Properties as Name extends Required ? never : Name]?: FromSchema<Properties[Name]>
} & { [Name in Exclude<Required, keyof Properties>]: unknown }

/**
 * Properties that `properties` does not name. Their type is known only if `additionalProperties` covers all properties.
 */
type Further<S> = S extends { readonly properties: infer Properties }
  ? string extends keyof Properties
    ? Bag<unknown>
    : S extends { readonly additionalProperties: infer Others }
      ? Others extends false
        ? unknown
        : Bag<unknown>
      : unknown
  : S extends { readonly patternProperties: unknown }
    ? Bag<unknown>
    : S extends { readonly additionalProperties: infer Others }
      ? Bag<FromSchema<Others>>
      : Bag<unknown>

interface Bag<Value> {
  [name: string]: Value
}
