import { Ajv2020 } from 'ajv/dist/2020.js'
import * as fc from 'fast-check'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { checks } from '../../src/sidecar/config/checks.ts'
import { settings } from '../../src/sidecar/config/settings.ts'
import { judge } from '../../src/sidecar/config/validate.ts'
import { parseDuration } from '../../src/std/duration.ts'
import { isObject, type Json, type JsonObject } from '../../src/std/json.ts'

/** A library of JSON Schema with the checks and defaults that ours has. */
function oracle(): (tree: Json) => Set<string> {
  const ajv = new Ajv2020({ allErrors: true, useDefaults: true, strictRequired: false })
  ajv.addVocabulary(['errorMessage'])
  for (const [name, check] of Object.entries(checks)) ajv.addFormat(name, (text) => check(text) === null)
  ajv.addKeyword({
    keyword: 'durationRange',
    type: 'string',
    schemaType: 'array',
    validate: ([least, most]: [string, string], text: string) => {
      const ms = parseDuration(text)
      return ms === null || (ms >= (parseDuration(least) ?? 0) && ms <= (parseDuration(most) ?? Infinity))
    },
  })
  const validate = ajv.compile(settings)
  return (tree) => {
    validate(tree)
    const errors = (validate.errors ?? []).filter(
      ({ keyword, schemaPath }) => keyword !== 'oneOf' && !/\/(oneOf|anyOf)\//.test(schemaPath),
    )
    return new Set(
      errors.map(({ instancePath, params }) => {
        const key: unknown = params['additionalProperty'] ?? params['missingProperty']
        return typeof key === 'string'
          ? `${instancePath}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
          : instancePath
      }),
    )
  }
}

const example = parse(
  readFileSync(new URL('../../config/sidecar.yaml', import.meta.url), 'utf8'),
) as JsonObject
const tool = { name: 'look-up', url: 'http://127.0.0.1:1', parameters: { type: 'object' }, deadline: '1m' }
const whole: JsonObject = {
  ...example,
  scope: { metadata: { app: 'billing' }, created_by_token: ['tok_1'] },
  webhooks: { enabled: true, secrets: ['a'], tolerance: '5m' },
  tools: [tool],
}

const value = fc.oneof(
  fc.constantFrom<Json[]>(
    '',
    '30s',
    '9999d',
    '1ms',
    'now',
    'http://a',
    'whsec_AAAA',
    '127.0.0.1:1',
    '2027-01-31',
  ),
  fc.constantFrom<Json[]>(null, true, 0, -1, 1.5, 1e9, 'x'.repeat(65), '𝄞'.repeat(4000), 'x'.repeat(4001)),
  fc.constantFrom<Json[]>([], {}, ['*'], ['turn.*', 'turn'], Array(201).fill('*'), { a: 'b' }, { a: 1 }, [
    {},
  ]),
  fc.string({ maxLength: 8 }),
)
/** At each step, which of the keys; the last one takes the value or, where it is a new name, gets it. */
const change = fc.record({
  steps: fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
  name: fc.option(fc.constantFrom('url', 'retry', 'batch', 'a/b~c', 'name', 'x'), { nil: null }),
  value,
})

function apply(
  tree: JsonObject,
  { steps, name, value }: { steps: number[]; name: string | null; value: Json },
): void {
  let at: JsonObject | Json[] = tree
  for (const [depth, step] of steps.entries()) {
    const keys: string[] = Object.keys(at)
    const key: string = keys[step % Math.max(keys.length, 1)] ?? '0'
    const below: Json | undefined = Array.isArray(at) ? at[Number(key)] : at[key]
    const last = depth === steps.length - 1
    if (!last && (isObject(below) || Array.isArray(below))) {
      at = below
      continue
    }
    if (Array.isArray(at)) at[Number(key)] = value
    else at[name ?? key] = value
    return
  }
}

test('the verdict on a configuration and its defaults are those of a JSON Schema library', () => {
  const expected = oracle()
  let refused = 0
  fc.assert(
    fc.property(fc.array(change, { maxLength: 4 }), (changes) => {
      const tree = structuredClone(whole)
      for (const one of changes) apply(tree, one)
      const [ours, theirs] = [structuredClone(tree), structuredClone(tree)]
      const found = new Set<string>()
      judge(ours, (path) =>
        found.add(
          path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join(''),
        ),
      )
      expect(found).toEqual(expected(theirs))
      expect(ours).toEqual(theirs)
      if (found.size > 0) refused++
    }),
    { numRuns: 1000 },
  )
  expect(refused).toBeGreaterThan(100)
})
