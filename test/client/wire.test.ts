import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readJson } from '../../src/std/depth.ts'
import { Malformed, parseTurn, readAction, readItem, readSession, readTurn } from '../../src/core/wire.ts'
import {
  asList,
  parseArtifact,
  parseHealth,
  parseOutcome,
  parsePage,
  parseWebhook,
} from '../../src/protocol/answers.ts'
import { repeats } from '../support/full.ts'

const none = (fault: Malformed): never => {
  throw fault
}
const session = { object: 'session', id: 's1', status: 'idle', updated_at: 5, required_actions: [] }

describe('a session', () => {
  test('keeps unknown fields, and parses known fields', () => {
    const raw = {
      ...session,
      status: 'requires_action',
      created_at: 4,
      title: 'Refunds',
      metadata: { order: '42', count: 3 },
      required_actions: [
        {
          type: 'function_call',
          call_id: 'c1',
          turn_id: 't1',
          name: 'f',
          arguments: [1],
          created_at: 1,
          expires_at: null,
        },
        { type: 'signature', call_id: 'c2', pages: 3 },
      ],
      colour: 'blue',
    }
    const read = readSession(raw, none)
    expect(read).toMatchObject({
      id: 's1',
      createdAt: 4,
      updatedAt: 5,
      title: 'Refunds',
      metadata: { order: '42' },
    })
    expect(read.raw).toBe(raw)
    expect(read.actions).toMatchObject([
      { type: 'function_call', callId: 'c1', turnId: 't1', name: 'f', arguments: [1], expiresAt: null },
      { type: 'signature', callId: 'c2', name: null, raw: { pages: 3 } },
    ])
  })

  test('one bad action does not affect the others, and is reported', () => {
    const faults: string[] = []
    const actions = [{ type: 'question' }, null, { type: 'question', call_id: 'c2' }]
    const read = readSession({ ...session, required_actions: actions }, ({ message }) => faults.push(message))
    expect(read.actions.map(({ callId }) => callId)).toEqual(['c2'])
    expect(faults).toEqual(['a required action has no call_id', 'a required action is not an object'])
  })

  test('an id with half a surrogate pair is malformed: a tool that ran under it ended the process', () => {
    const faults: string[] = []
    const actions = [{ type: 'function_call', call_id: 'c\ud800', name: 'f' }]
    const read = readSession({ ...session, required_actions: actions }, ({ message }) => faults.push(message))
    expect([read.actions, faults]).toEqual([[], ['a required action has no call_id']])
    expect(() => readSession({ ...session, id: '\udfff' }, none)).toThrow(Malformed)
  })

  test('an id or a status that no index of the store takes is malformed', () => {
    const [longest, longer] = [998, 999].map((length) => 'x'.repeat(length))
    const action = { type: 'question', call_id: longest }
    const read = readSession({ ...session, id: longest, required_actions: [action] }, none)
    expect([read.id, read.actions[0]?.callId]).toEqual([longest, longest])
    for (const change of [
      { id: longer },
      { status: longer },
      { required_actions: [{ ...action, call_id: longer }] },
      { required_actions: [{ ...action, turn_id: longer }] },
    ])
      expect(() => readSession({ ...session, ...change }, none)).toThrow(/longer than 1000 bytes$/)
    expect(parseTurn({ id: 't', session_id: '\0'.repeat(200), status: 'running' })).toBe(null)
    expect(() => readItem({ id: longer, type: 'message' }, 's1')).toThrow(Malformed)
  })

  test('that requires action and lists no action is not parsed as one without actions', () => {
    const silent = { ...session, required_actions: null }
    expect(readSession(silent, none).actions).toEqual([])
    expect(() => readSession({ ...silent, status: 'requires_action' }, none)).toThrow(Malformed)
    expect(() => readSession({ ...session, required_actions: {} }, none)).toThrow(Malformed)
  })

  test.each(['id', 'status', 'updated_at'])('without %s is malformed', (key) => {
    expect(() => readSession({ ...session, [key]: undefined }, none)).toThrow(key)
    expect(() => readSession({ ...session, [key]: {} }, none)).toThrow(Malformed)
  })
})

describe('a turn', () => {
  test.each([{}, { completed_at: null, artifacts: null, error: null }])(
    'that runs may have %j',
    (missing) => {
      const turn = readTurn(
        { id: 't1', session_id: 's1', status: 'working', started_at: 3, ...missing },
        'other',
      )
      expect(turn).toMatchObject({ sessionId: 's1', startedAt: 3, completedAt: null, artifacts: null })
    },
  )

  test('without a session id belongs to the session that was requested', () => {
    expect(readTurn({ id: 't1', status: 'completed' }, 's9').sessionId).toBe('s9')
  })
})

test('an item names its event, when it has one', () => {
  expect(readItem({ id: 'i', type: 'tool_call', detail: { event: 'agent.tool_result' } }, 's').event).toBe(
    'agent.tool_result',
  )
  expect(readItem({ id: 'i', type: 'message', detail: null }, 's').event).toBeNull()
})

test('every field that facts are made of is read', () => {
  const action = { type: 'question', call_id: 'c1', created_at: 1, expires_at: 2 }
  expect(readAction(action)).toMatchObject({ createdAt: 1, expiresAt: 2 })
  const turn = {
    id: 't1',
    status: 'completed',
    created_at: 1,
    started_at: 2,
    completed_at: 3,
    artifacts: 'ready',
  }
  const read = { createdAt: 1, startedAt: 2, completedAt: 3, artifacts: 'ready', raw: turn }
  expect(readTurn(turn, 's')).toMatchObject(read)
  expect(parseTurn(turn)).toMatchObject({ ...read, sessionId: '' })
  expect(parseTurn({ id: 't1' })).toBeNull()
  expect(readItem({ id: 'i1', type: 'message', session_id: 's2', created_at: 4 }, 's')).toMatchObject({
    sessionId: 's2',
    createdAt: 4,
  })
})

test('a skipped entry is reported as malformed', () => {
  expect(new Malformed('x')).toMatchObject({ name: 'Malformed', message: 'x' })
})

test('a subscription is active unless it says that it is not, and shows its secret once', () => {
  const raw = { id: 'whsub_1', url: 'https://a.example', events: ['turn.completed', 7], secret: 'x' }
  expect(parseWebhook(raw)).toMatchObject({ events: ['turn.completed'], active: true, secret: 'x' })
  expect(parseWebhook({ ...raw, active: false, secret: undefined })).toMatchObject({
    active: false,
    secret: null,
  })
})

test('health needs scopes and usable', () => {
  expect(parseHealth({ scopes: ['cli'], usable: false, missing_scopes: ['sessions:read'] })).toEqual({
    scopes: ['cli'],
    usable: false,
    missingScopes: ['sessions:read'],
  })
  expect(() => parseHealth({ scopes: ['cli'] })).toThrow(Malformed)
})

describe('a page', () => {
  const parse = (entry: unknown): string => readAction(entry).callId

  test.each(['', null, undefined])('may have %j for last_id when it is empty', (last_id) => {
    expect(parsePage({ data: [], has_more: false, last_id }, parse, none).lastId).toBeNull()
  })

  test('one bad entry loses neither the others nor the next cursor', () => {
    const faults: string[] = []
    const data = [{ type: 'a', call_id: 'c1' }, 'x', { type: 'b', id: 'row9' }]
    const page = parsePage({ data, has_more: true }, parse, ({ message }) => faults.push(message))
    expect(page).toEqual({ data: ['c1'], hasMore: true, lastId: 'row9' })
    expect(faults).toHaveLength(2)
  })

  test.each([
    { has_more: false },
    { data: {}, has_more: false },
    { data: [] },
    { data: [], has_more: 'no' },
    null,
  ])('%j is malformed', (value) => {
    expect(() => parsePage(value, parse, none)).toThrow(Malformed)
  })

  test('with has_more and without last_id is malformed: reading on would never end', () => {
    expect(() => parsePage({ data: [1], has_more: true }, parse, () => undefined)).toThrow('last_id')
  })
})

test('the next page begins after last_id, or else after the last entry', () => {
  const parse = (entry: unknown): string => readAction(entry).callId
  const data = [{ type: 'a', call_id: 'c1', id: 'row1' }]
  expect(parsePage({ data, has_more: true, last_id: 'row7' }, parse, none).lastId).toBe('row7')
  expect(parsePage({ data, has_more: true, last_id: null }, parse, none).lastId).toBe('row1')
  expect(parsePage({ data, has_more: false }, parse, none)).toEqual({
    data: ['c1'],
    hasMore: false,
    lastId: 'row1',
  })
})

test.each([
  [[{ id: 1 }], { data: [{ id: 1 }], has_more: false }],
  [
    { data: [], other: 1 },
    { data: [], other: 1, has_more: false },
  ],
  [
    { data: [], has_more: true },
    { data: [], has_more: true },
  ],
  [
    { data: [], has_more: 'no' },
    { data: [], has_more: 'no' },
  ],
  ['x', 'x'],
])('%j is a list whose paging is not shown: %j', (value, list) => {
  expect(asList(value)).toEqual(list)
})

test.each([
  [{ outcome: 'delivered' }, 'delivered'],
  [{ outcome: 1 }, null],
  [{}, null],
  ['delivered', null],
])('the service says of an answer %j: %s', (value, outcome) => {
  expect(parseOutcome(value)).toBe(outcome)
})

test('a malformed part is reported by its name, so that an operator finds it in the interface', () => {
  const page = (value: unknown) => parsePage(value, (entry) => entry, none)
  const turn = (value: unknown) => readTurn(value, 's1')
  const item = (value: unknown) => readItem(value, 's1')
  const asked = (value: unknown) => readSession(value, none)
  const cases: [(value: unknown) => unknown, unknown, string][] = [
    [parseWebhook, 1, 'a webhook subscription is not an object'],
    [parseWebhook, { url: 'x' }, 'a webhook subscription has no id'],
    [parseWebhook, { id: 'x' }, 'a webhook subscription has no url'],
    [parseHealth, [], 'the health report is not an object'],
    [parseHealth, { usable: true }, 'the health report has no list scopes'],
    [parseHealth, { scopes: [] }, 'the health report has no boolean usable'],
    [page, null, 'a list is not an object'],
    [page, {}, 'a list has no data'],
    [page, { data: [] }, 'a list has no boolean has_more'],
    [page, { data: [], has_more: true }, 'a list has more and no last_id'],
    [parseArtifact, 'x', 'an artifact is not an object'],
    [parseArtifact, { path: 'a' }, 'an artifact has no id'],
    [asked, null, 'a session is not an object'],
    [asked, { ...session, id: 1 }, 'a session has no id'],
    [asked, { ...session, status: null }, 'a session has no status'],
    [asked, { ...session, updated_at: '5' }, 'a session has no time updated_at'],
    [asked, { ...session, updated_at: 2 ** 53 }, 'a session has no time updated_at'],
    [
      asked,
      { id: 's1', status: 'requires_action', updated_at: 5 },
      'a session that requires action has no required_actions',
    ],
    [asked, { ...session, required_actions: {} }, 'required_actions of a session is not a list'],
    [readAction, [], 'a required action is not an object'],
    [readAction, { call_id: 'c1' }, 'a required action has no type'],
    [turn, 7, 'a turn is not an object'],
    [turn, { status: 'working' }, 'a turn has no id'],
    [turn, { id: 't1' }, 'a turn has no status'],
    [item, true, 'an item is not an object'],
    [item, { type: 'message' }, 'an item has no id'],
    [item, { id: 'i1' }, 'an item has no type'],
  ]
  for (const [parse, value, message] of cases) expect(() => parse(value)).toThrow(new Malformed(message))
})

test('times are whole milliseconds, and null where no clock can show them', () => {
  const read = readSession({ ...session, created_at: 4.75, updated_at: 5.25 }, () => undefined)
  expect([read.createdAt, read.updatedAt]).toEqual([4, 5])
  expect(readTurn({ id: 't1', status: 'working', created_at: 1e300, started_at: -0.5 }, 's1')).toMatchObject({
    createdAt: null,
    startedAt: -1,
  })
})

test('any input is parsed or malformed, and never throws anything else', () => {
  const word = fc.constantFrom(
    'id',
    'status',
    'type',
    'data',
    'has_more',
    'call_id',
    'updated_at',
    'required_actions',
  )
  const value = fc.oneof(
    fc.jsonValue(),
    fc.dictionary(word, fc.oneof(fc.jsonValue(), fc.string({ minLength: 1 }), fc.nat(), fc.boolean())),
  )
  const skip = (): void => undefined
  const parsers = [
    (raw: unknown) => readSession(raw, skip),
    (raw: unknown) => readTurn(raw, 's'),
    (raw: unknown) => readItem(raw, 's'),
    (raw: unknown) => parsePage(raw, (entry) => readSession(entry, skip), skip),
    parseWebhook,
    parseHealth,
    readAction,
  ]
  const kindOf = (run: () => unknown): string => {
    try {
      run()
      return 'read'
    } catch (error) {
      return error instanceof Malformed ? 'malformed' : String(error)
    }
  }
  fc.assert(
    fc.property(value, fc.constantFrom(...parsers), (raw, parse) => {
      expect(['read', 'malformed']).toContain(kindOf(() => parse(raw)))
    }),
    { numRuns: repeats(2000) },
  )
})

describe('JSON', () => {
  test('nested beyond reason is refused before it can do harm', () => {
    const deep = '['.repeat(1_000_000) + ']'.repeat(1_000_000)
    expect(() => readJson(deep)).toThrow('levels deep')
    expect(() => readJson('{"a":'.repeat(1_000_000))).toThrow('levels deep')
  })

  test('brackets inside strings do not count', () => {
    const text = JSON.stringify({ a: `${'['.repeat(1000)}\\"${'{'.repeat(1000)}` })
    expect(readJson(text)).toEqual(JSON.parse(text))
  })

  test('any JSON is read as JSON.parse reads it', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 20 }), (text) => {
        expect(readJson(text)).toEqual(JSON.parse(text))
      }),
    )
  })
})
