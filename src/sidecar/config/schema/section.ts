import { Type, type TObject, type TProperties } from 'typebox'
import { DURATION_PATTERN } from '../../../std/duration.ts'

/** A closed object. Keys that have a default may be omitted. */
export function section<P extends TProperties>(properties: P, options: object = {}): TObject<P> {
  const schema = Type.Object(properties, { additionalProperties: false, ...options })
  const needed = Object.keys(properties).filter((key) => {
    const property = properties[key] ?? {}
    return !('default' in property || Type.IsOptional(property))
  })
  return Object.assign(schema, { required: needed })
}

export const NAME = {
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  errorMessage: '1 to 64 letters, digits, "_" and "-"',
}

export const duration = (
  description: string,
  range: [string, string],
  options: { default: string } | { examples: string[] },
) =>
  Type.String({
    description,
    pattern: DURATION_PATTERN,
    errorMessage: 'a duration such as 250ms, 30s, 5m, 9h or 7d',
    durationRange: range,
    examples: ['250ms', '30s', '5m'],
    ...options,
  })

export const flag = (description: string, value: boolean) => Type.Boolean({ description, default: value })

export const secret = (description: string, options: object = {}) =>
  Type.Optional(Type.String({ description, writeOnly: true, ...options }))

export const secretFile = (what: string) =>
  Type.Optional(
    Type.String({
      description: `A file that holds ${what}, relative to this file; read again when it changes.`,
      examples: ['/run/secrets/token'],
    }),
  )

export const retry = (attempts: number, base: string, max: string, description: string) =>
  section(
    {
      attempts: Type.Integer({
        description: 'Attempts in all, the first included.',
        minimum: 1,
        maximum: 1000,
        default: attempts,
      }),
      base: duration(
        'The wait before the second attempt is random, from 0 to this. The upper bound doubles with each attempt.',
        ['1ms', '1h'],
        { default: base },
      ),
      max: duration('Largest upper bound of a wait.', ['1ms', '7d'], { default: max }),
    },
    { description, default: {} },
  )
