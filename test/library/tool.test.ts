import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { DeadLetter, defineHandlers, tool } from '../../src/index.ts'
import type { CallbackEvent } from '../../src/core/handler.ts'
import type { ToolCall } from '../../src/core/tool.ts'

const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
const context = { signal: new AbortController().signal, log }
const base = { name: 'lookup', description: 'Finds' }

function call(args: ToolCall['arguments'], more: Partial<ToolCall> = {}): ToolCall {
  return {
    callId: 'call_1',
    name: 'lookup',
    arguments: args,
    sessionId: 'ses_1',
    turnId: null,
    createdAt: null,
    expiresAt: null,
    attempt: 1,
    uncertain: false,
    session: { title: null, metadata: {}, status: 'idle' },
    ...more,
  }
}

const JSON_SCHEMA = { type: 'object', properties: { order: { type: 'integer' } }, required: ['order'] }
const ZOD = z.object({ order: z.number().int() })

describe.each([
  ['a plain JSON Schema', JSON_SCHEMA],
  ['zod', ZOD],
])('a tool with %s', (_, input) => {
  it('declares its arguments to the service', () => {
    const { parameters } = tool({ ...base, input, run: () => 1 })
    expect(parameters).toMatchObject({
      type: 'object',
      properties: { order: { type: 'integer' } },
      required: ['order'],
    })
  })

  it('runs with arguments that fit', async () => {
    const made = tool({ ...base, input, run: (args) => args })
    expect(await made.run(call({ order: 42 }), context)).toEqual({ kind: 'output', output: '{"order":42}' })
  })

  it.each([[{ order: 'forty' }], [{}], ['text'], [[]], [undefined]])(
    'is not run with %j: the fixed error',
    async (args) => {
      let ran = false
      const made = tool({ ...base, input, run: () => (ran = true) })
      expect(await made.run(call(args), context)).toMatchObject({ kind: 'rejected' })
      expect(ran).toBe(false)
    },
  )

  it('sends the model the mismatches with explain: true', async () => {
    const made = tool({ ...base, input, explain: true, run: () => 1 })
    const result = await made.run(call({ order: 'forty' }), context)
    expect(result).toMatchObject({ kind: 'output' })
    expect(JSON.stringify(result)).toMatch(/order: /)
    expect(JSON.stringify(result)).not.toContain('forty')
  })
})

describe('a tool', () => {
  it.each([
    ['text as it is', 'plain', 'plain'],
    ['anything else as JSON', { a: [1] }, '{"a":[1]}'],
    ['null', null, 'null'],
    ['nothing', undefined, '(no output)'],
    ['an empty text', '', '(no output)'],
  ])('answers %s', async (_, value, output) => {
    expect(await tool({ ...base, input: {}, run: () => value }).run(call({}), context)).toEqual({
      kind: 'output',
      output,
    })
  })

  const circle: Record<string, unknown> = {}
  circle['self'] = circle
  it.each([
    ['a big integer', { id: 12n }],
    ['a circle', circle],
    [
      'what cannot say what it is',
      {
        toJSON() {
          throw new Error('no')
        },
      },
    ],
  ])('that returns %s is not run again: the fixed error', async (_, value) => {
    const made = tool({ ...base, input: {}, run: () => value })
    expect(await made.run(call({}), context)).toMatchObject({ kind: 'rejected' })
  })

  it('gets the context that it needs to be idempotent', async () => {
    const made = tool({
      ...base,
      input: {},
      run: (_, { callId, attempt, uncertain }) => `${callId} ${attempt} ${uncertain}`,
    })
    expect(await made.run(call({}, { attempt: 2, uncertain: true }), context)).toMatchObject({
      output: 'call_1 2 true',
    })
  })

  it('gets the arguments that the schema returned', async () => {
    const input = z.object({ when: z.string().default('now') })
    const made = tool({ ...base, input, run: ({ when }) => when })
    expect(await made.run(call(undefined), context)).toMatchObject({ output: 'now' })
  })

  it.each([
    ['a name with a space', { name: 'look up', input: {} }],
    ['an empty name', { name: '', input: {} }],
    ['a duration that is none', { input: {}, timeout: 'soon' }],
    ['no time at all', { input: {}, timeout: '0' }],
    ['more time than a configuration may give', { input: {}, timeout: '3h' }],
    ['a number for a duration', { input: {}, timeout: 30 as never }],
    ['a deadline that the service does not take', { input: {}, deadline: '500ms' }],
    ['a wait that is too long', { input: {}, retry: { max: '8d' } }],
    ['room for none', { input: {}, concurrency: 0 }],
    ['room for one and a half', { input: {}, concurrency: 1.5 }],
    ['no attempt', { input: {}, retry: { attempts: 0 } }],
    ['a word that means nothing after a crash', { input: {}, after_crash: 'ignore' as never }],
    ['an error that is too long', { input: {}, error: 'x'.repeat(4001) }],
    ['a word that means nothing where it was not delivered', { input: {}, on_not_delivered: '' as never }],
    ['an error that says nothing', { input: {}, error: '' }],
    ['a schema that is none', { input: { type: 'objekt' } }],
    ['a schema of an unknown draft', { input: { $schema: 'https://example.com/none' } }],
  ])('is refused with %s, as a TypeError that says which', (_, more) => {
    expect(() => tool({ ...base, run: () => 1, ...more })).toThrow(TypeError)
  })

  it('accepts a schema that names draft-07', () => {
    const input = { $schema: 'http://json-schema.org/draft-07/schema#', ...JSON_SCHEMA }
    expect(tool({ ...base, input, run: () => 1 }).parameters).toEqual(input)
  })

  it('is refused when its schema can check but not describe itself', () => {
    const input = {
      '~standard': { version: 1, vendor: 'homemade', validate: (value: unknown) => ({ value }) },
    }
    expect(() => tool({ ...base, input: input as never, run: () => 1 })).toThrow(
      /homemade has no JSON Schema/,
    )
  })
})

describe('handlers', () => {
  const event = (type: string): CallbackEvent => ({
    type,
    timestamp: '',
    id: 'evt_1',
    session_id: null,
    data: {},
    delivery: { attempt: 1, handler: 'app' },
    seen: {},
  })
  const given = { attempt: 1, ...context }

  it('are called for their type, their family or all, in order, and the last answer counts', async () => {
    const called: string[] = []
    const module = defineHandlers({
      on: {
        'turn.settled': () => void called.push('turn.settled'),
        'turn.*': () => (called.push('turn.*'), { verdict: 'retry' }),
        '*': () => void called.push('*'),
      },
    })
    expect(module.events).toEqual(['turn.settled', 'turn.*', '*'])
    expect(await module.handle(event('turn.settled'), given)).toEqual({ verdict: 'retry' })
    expect(await module.handle(event('session.idle'), given)).toBeUndefined()
    expect(called).toEqual(['turn.settled', 'turn.*', '*', '*'])
  })

  it('pass on what one of them throws', async () => {
    const module = defineHandlers({
      on: {
        '*': () => {
          throw new DeadLetter('never')
        },
      },
    })
    await expect(module.handle(event('turn.settled'), given)).rejects.toThrow(DeadLetter)
  })

  it('carry the tools of their module', () => {
    const lookup = tool({ ...base, input: {}, run: () => 1 })
    expect(defineHandlers({ tools: [lookup] }).tools).toEqual([lookup])
  })
})
