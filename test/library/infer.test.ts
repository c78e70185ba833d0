import { expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { tool } from '../../src/index.ts'
import type { InputOf, ToolInput } from '../../src/sidecar/library/schema.ts'

/** What `run` of a tool with this schema gets. The schema stands as a literal, as in a program. */
function argumentsOf<const I extends ToolInput>(input: I): InputOf<I> | undefined {
  tool({ name: 'any', description: '', input, run: () => null })
  return undefined
}

type Maybe<T> = T | undefined

it('an object has its properties, of which those not required may be missing', () => {
  const args = argumentsOf({
    type: 'object',
    properties: {
      order_id: { type: 'string', description: 'As printed on the receipt' },
      lines: { type: 'integer' },
      weight: { type: 'number' },
      gift: { type: 'boolean' },
      nothing: { type: 'null' },
    },
    required: ['order_id', 'lines', 'signature'],
    additionalProperties: false,
  })
  expectTypeOf(args).toEqualTypeOf<
    Maybe<{
      order_id: string
      lines: number
      signature: unknown
      weight?: number
      gift?: boolean
      nothing?: null
    }>
  >()
})

it('objects and arrays nest', () => {
  const args = argumentsOf({
    type: 'object',
    properties: {
      lines: {
        type: 'array',
        items: {
          type: 'object',
          properties: { sku: { type: 'string' }, tags: { type: 'array', items: { type: 'string' } } },
          required: ['sku', 'tags'],
        },
      },
    },
    required: ['lines'],
  })
  expectTypeOf(args).toEqualTypeOf<Maybe<{ lines: { sku: string; tags: string[] }[] }>>()
})

it('words are those of enum and const', () => {
  const args = argumentsOf({
    type: 'object',
    properties: {
      size: { type: 'string', enum: ['s', 'm'] },
      any: { enum: ['one', 2, null] },
      kind: { const: 'order' },
    },
    required: ['size', 'any', 'kind'],
  })
  expectTypeOf(args).toEqualTypeOf<Maybe<{ size: 's' | 'm'; any: 'one' | 2 | null; kind: 'order' }>>()
})

it('several types are a union, and so are anyOf and oneOf', () => {
  const several = argumentsOf({
    type: 'object',
    properties: {
      note: { type: ['string', 'null'] },
      nullable: { type: 'string', nullable: true },
      either: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
    },
    required: ['note', 'nullable', 'either'],
  })
  expectTypeOf(several).toEqualTypeOf<
    Maybe<{ note: string | null; nullable: string | null; either: string | number }>
  >()
  const shapes = argumentsOf({
    oneOf: [
      {
        type: 'object',
        properties: { by: { const: 'id' }, id: { type: 'string' } },
        required: ['by', 'id'],
      },
      {
        type: 'object',
        properties: { by: { const: 'row' }, row: { type: 'integer' } },
        required: ['by', 'row'],
      },
    ],
  })
  expectTypeOf(shapes).toEqualTypeOf<Maybe<{ by: 'id'; id: string } | { by: 'row'; row: number }>>()
})

it('what must fit several schemas has the type of all of them', () => {
  const args = argumentsOf({
    type: 'object',
    properties: { a: { type: 'string' } },
    required: ['a'],
    allOf: [{ type: 'object', properties: { b: { type: 'integer' } }, required: ['b'] }],
    anyOf: [{ required: ['a'] }, { required: ['b'] }],
  })
  expectTypeOf(args).toEqualTypeOf<Maybe<{ a: string; b: number }>>()
})

it('other properties have a type where nothing else says what a property is', () => {
  expectTypeOf(argumentsOf({ type: 'object' })).toEqualTypeOf<Maybe<{ [name: string]: unknown }>>()
  expectTypeOf(argumentsOf({ type: 'object', additionalProperties: { type: 'number' } })).toEqualTypeOf<
    Maybe<{ [name: string]: number }>
  >()
  expectTypeOf(
    argumentsOf({
      type: 'object',
      properties: { a: { type: 'string' } },
      required: ['a'],
      additionalProperties: { type: 'number' },
    }),
  ).toEqualTypeOf<Maybe<{ [name: string]: unknown; a: string }>>()
  expectTypeOf(
    argumentsOf({
      type: 'object',
      patternProperties: { '^x': { type: 'string' } },
      additionalProperties: false,
    }),
  ).toEqualTypeOf<Maybe<{ [name: string]: unknown }>>()
})

it('what cannot be inferred is unknown', () => {
  const built = { type: 'object', properties: { order_id: { type: 'string' } }, required: ['order_id'] }
  expectTypeOf(argumentsOf(built)).toBeUnknown()
  expectTypeOf(argumentsOf({})).toBeUnknown()
  expectTypeOf(argumentsOf({ properties: { a: { type: 'string' } }, required: ['a'] })).toBeUnknown()
  expectTypeOf(argumentsOf({ $defs: { a: { type: 'string' } }, $ref: '#/$defs/a' })).toBeUnknown()
  expectTypeOf(argumentsOf({ anyOf: [{ type: 'string' }, { minimum: 3 }] })).toBeUnknown()
  expectTypeOf(argumentsOf({ type: 'array' })).toEqualTypeOf<Maybe<unknown[]>>()
  // A tuple in 2020-12, and a word without meaning in draft-07.
  expectTypeOf(argumentsOf({ type: 'array', prefixItems: [{ type: 'string' }] })).toEqualTypeOf<
    Maybe<unknown[]>
  >()
  expectTypeOf<InputOf<{ type: 'object'; required: string[] }>>().toEqualTypeOf<{ [name: string]: unknown }>()
  expectTypeOf<InputOf<{ type: 'object'; properties: Record<string, { type: 'string' }> }>>().toEqualTypeOf<{
    [name: string]: unknown
  }>()
})

it('nothing fits false', () => {
  expectTypeOf<InputOf<{ type: 'object'; properties: { a: false; b: true } }>>().toEqualTypeOf<{
    a?: never
    b?: unknown
  }>()
})

it('a Standard Schema says itself what it accepts', () => {
  expectTypeOf(argumentsOf(z.object({ order: z.number().int() }))).toEqualTypeOf<Maybe<{ order: number }>>()
  tool({
    name: 'any',
    description: '',
    input: z.object({ when: z.string().default('now') }),
    run: (args) => expectTypeOf(args).toEqualTypeOf<{ when: string }>(),
  })
})

it('run has the inferred arguments without an annotation', () => {
  tool({
    name: 'lookup_order',
    description: 'Finds an order by its id',
    input: { type: 'object', properties: { order_id: { type: 'string' } }, required: ['order_id'] },
    run: ({ order_id }) => expectTypeOf(order_id).toBeString(),
  })
})
