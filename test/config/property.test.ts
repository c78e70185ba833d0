import * as fc from 'fast-check'
import path from 'node:path'
import { writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { ConfigError } from '../../src/sidecar/config/fault.ts'
import { loadConfig, resolveConfig } from '../../src/sidecar/config/load.ts'
import { printConfig } from '../../src/sidecar/config/print.ts'
import type { ConfigInput } from '../../src/sidecar/config/schema.ts'
import { folderWith } from './folder.ts'
import { repeats } from '../support/full.ts'

/** Keys that exist are mixed in, lest every try end at the first unknown key. */
const KEYS = [
  'service',
  'base_url',
  'token',
  'stream',
  'start_from',
  'handlers',
  'name',
  'url',
  'retry',
  'batch',
  'tools',
]
const key = fc.oneof(
  fc.constantFrom(...KEYS),
  fc.string(),
  fc.constantFrom('__proto__', 'constructor', '<<', 'toString'),
)
const { value: anything } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, depthSize: 'medium' },
    fc.oneof(
      fc.string(),
      fc.double(),
      fc.boolean(),
      fc.constant(null),
      fc.constantFrom('${', '${A}', '${A:-b}', '30s'),
    ),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(key, tie('value'), { maxKeys: 6 }),
  ),
}))

const MARKS = Array.from('{}[]:,-&*!|>\'"#%@`? \n\tab<')

/** `valid`, or `refused` with faults that each say something; anything else that is thrown is a bug of ours. */
async function outcome(loading: Promise<unknown>): Promise<'valid' | 'refused' | 'refused without a word'> {
  try {
    await loading
    return 'valid'
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const spoken = error.faults.length > 0 && error.faults.every((fault) => fault.message !== '')
    return spoken ? 'refused' : 'refused without a word'
  }
}

test('any text of a file is a configuration or a list of faults', async () => {
  const file = path.join(await folderWith({}), 'sidecar.yaml')
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.string({ unit: fc.constantFrom(...MARKS), maxLength: 60 }),
    anything.map((value) => JSON.stringify(value) ?? ''),
    anything.map((value) => stringify(value)),
  )
  await fc.assert(
    fc.asyncProperty(text, async (content) => {
      await writeFile(file, content)
      expect(await outcome(loadConfig(file, { A: '1' }))).toMatch(/^(valid|refused)$/)
    }),
    { numRuns: repeats(1500) },
  )
})

test('with any environment the result is a configuration or a list of faults', async () => {
  const step = fc.oneof(fc.constantFrom(...KEYS, '0', '1', '9', ''), fc.string({ maxLength: 5 }))
  const variable = fc
    .array(step, { minLength: 1, maxLength: 5 })
    .map((steps) => `SIDECAR_${steps.join('__').toUpperCase()}`)
  const content = fc.oneof(
    fc.string(),
    anything.map((value) => JSON.stringify(value) ?? ''),
  )
  await fc.assert(
    fc.asyncProperty(fc.dictionary(variable, content), async (env) => {
      const loading = resolveConfig({ service: { base_url: 'https://a.b', token: 'x' } }, { env })
      expect(await outcome(loading)).toMatch(/^(valid|refused)$/)
    }),
    { numRuns: repeats(1000) },
  )
})

test('any object is a configuration or a list of faults, and changes no prototype', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.anything({ withBigInt: true, withMap: true, withDate: true, withNullPrototype: true }),
      async (value) => {
        expect(await outcome(resolveConfig(value as ConfigInput))).toBe('refused')
        expect(Object.keys(Object.prototype)).toEqual([])
      },
    ),
  )
})

const name = fc.stringMatching(/^[A-Za-z0-9_-]{1,20}$/)
const duration = fc
  .tuple(fc.integer({ min: 1, max: 50 }), fc.constantFrom('s', 'm'))
  .map(([n, unit]) => `${n}${unit}`)
const retry = fc.record(
  { attempts: fc.integer({ min: 1, max: 50 }), base: duration, max: duration },
  { requiredKeys: [] },
)
const handler = fc.record(
  {
    name,
    url: fc.webUrl(),
    events: fc.uniqueArray(fc.constantFrom('*', 'turn.*', 'turn.settled', 'agent.text'), { minLength: 1 }),
    format: fc.constantFrom('standard' as const, 'cloudevents' as const),
    ordered: fc.boolean(),
    concurrency: fc.integer({ min: 1, max: 64 }),
    batch: fc.record(
      { max: fc.integer({ min: 1, max: 100 }), wait: fc.constant('20ms') },
      { requiredKeys: [] },
    ),
    timeout: duration,
    retry,
  },
  { requiredKeys: ['name', 'url'] },
)
const tool = fc.record(
  {
    name,
    url: fc.webUrl(),
    description: fc.string({ minLength: 1 }),
    parameters: fc.constant({ type: 'object', properties: { a: { enum: [null, '', 1] } } }),
    error: fc.oneof(fc.string({ minLength: 1 }), fc.constantFrom('${A}', '$${A}', '$$', '$&')),
    after_crash: fc.constantFrom('retry' as const, 'fail' as const),
    retry,
  },
  { requiredKeys: ['name', 'url'] },
)
const valid: fc.Arbitrary<ConfigInput> = fc.record({
  service: fc.record({
    base_url: fc.constant('https://agents.example.com/x'),
    token_file: fc.constant('token'),
  }),
  polling: fc.record({ interval: duration, sweep: duration }, { requiredKeys: [] }),
  handlers: fc.uniqueArray(handler, { selector: (one) => one.name, maxLength: 4 }),
  tools: fc.uniqueArray(tool, { selector: (one) => one.name, maxLength: 4 }),
})

test('what is printed of a configuration means the same when it is read', async () => {
  const folder = await folderWith({ token: 'svc_pat_secret' })
  await fc.assert(
    fc.asyncProperty(valid, async (input) => {
      const first = await resolveConfig(input, { base: folder })
      const printed = printConfig(first)
      expect(printed).not.toContain('svc_pat_secret')
      await writeFile(`${folder}/printed.yaml`, printed)
      const second = await loadConfig(`${folder}/printed.yaml`, {})
      expect(second.config).toEqual(first.config)
    }),
    { numRuns: repeats(200) },
  )
})
