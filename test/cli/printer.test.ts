import { describe, expect, test } from 'vitest'
import { renderRecord, renderTitles } from '../../src/cli/dev/printer.ts'
import type { DevRecord } from '../../src/cli/dev/record.ts'
import { renderSummary } from '../../src/cli/dev/show.ts'
import { coloured, plain } from '../../src/cli/terminal.ts'

const records: DevRecord[] = [
  {
    kind: 'fact',
    at: 1012,
    type: 'turn.settled',
    id: 'evt_1',
    session: 'A plain turn',
    channel: 'stream',
    ms: 2,
  },
  {
    kind: 'callback',
    id: 'evt_1',
    at: 1017,
    type: 'turn.settled',
    session: 'A plain turn',
    status: 204,
    error: null,
    ms: 3.2,
    attempt: 1,
    outcome: 'delivered',
    wait: null,
  },
  {
    kind: 'callback',
    id: 'evt_1',
    at: 2900,
    type: 'turn.settled',
    session: 'A plain turn',
    status: null,
    error: 'timeout',
    ms: 1500,
    attempt: 2,
    outcome: 'retry',
    wait: 2000,
  },
  {
    kind: 'tool',
    at: 3000,
    name: 'look',
    session: 'Two calls at once',
    outcome: 'answered',
    answer: { kind: 'output', text: '{"a":\n1}' },
    ms: 20,
  },
  {
    kind: 'tool',
    at: 3000,
    name: 'look',
    session: 'x'.repeat(50),
    outcome: 'not_delivered',
    answer: null,
    ms: 20,
  },
]

describe('a line of dev', () => {
  const screen = { start: 1000, width: null, paint: plain }

  test('says when, what, of which session, by whom and how long, in columns', () => {
    expect([renderTitles(screen), ...records.map((record) => renderRecord(record, screen))]).toEqual([
      ' seconds  what      type                      session                   by                took',
      '   0.012  fact      turn.settled              A plain turn              stream            2 ms  evt_1',
      '   0.017  callback  turn.settled              A plain turn              app 204           3 ms',
      '   1.900  callback  turn.settled              A plain turn              app no answer    1.5 s  attempt 2, again in 2.0 s with the same id, timeout',
      '   2.000  tool      look                      Two calls at once         answered         20 ms  {"a": 1}',
      `   2.000  tool      look                      ${'x'.repeat(23)}…  not_delivered    20 ms`,
    ])
  })

  test.each([80, 100, 200])('fits a screen of %i columns', (width) => {
    for (const record of records) {
      expect(renderRecord(record, { ...screen, width }).length).toBeLessThanOrEqual(width)
    }
  })

  test('is coloured where that is wanted', () => {
    const line = renderRecord(
      { ...(records[0] as DevRecord), session: '\u001b[2Jgone' },
      { ...screen, paint: coloured },
    )
    expect(line).toContain('\u001b[32mturn.settled')
    expect(line).not.toContain('\u001b[2J')
  })
})

test('the summary names what is missing', () => {
  const comparison = {
    facts: { made: 15, delivered: 3 },
    expected: Array.from({ length: 15 }, (_, index) => `turn.settled turn_${index}`),
    missing: Array.from({ length: 12 }, (_, index) => `turn.settled turn_${index}`),
    repeated: 1,
    calls: { asked: 2, answered: 1 },
    underWay: ['turn_9'],
  }
  const text = renderSummary(comparison, 5200, plain)
  expect(text).toContain('✗ 3 of 15 facts delivered\n')
  expect(text).toContain('✗ 3 of 15 expected facts delivered (session statuses are not compared)\n')
  expect(text).toContain('✗ 1 of 2 function calls answered\n')
  expect(text).toContain('✗ 1 still under way\n')
  expect(text).toContain('missing  turn.settled turn_0\n')
  expect(text).toContain('and 2 more\n')
})

test.each([
  ['deferred', 202, null, 'app 202', 'the app answers later'],
  ['rejected', 409, 'the tool answered 409', 'app 409', 'not repeated: the agent gets an error'],
  [
    'failed',
    null,
    'the app answered 422 once',
    'app no answer',
    'attempt 2, again with the same idempotency-key, the app answered 422 once',
  ],
] as const)('says what follows a run that was %s', (outcome, status, error, answer, next) => {
  const report = { tool: 'look', callId: 'c', sessionId: 's', outcome, status, error, seconds: 1, attempt: 2 }
  const line = renderRecord(
    { kind: 'run', at: 1000, session: 'x', report },
    { start: 0, width: null, paint: plain },
  )
  expect(line).toContain(answer)
  expect(line.endsWith(next)).toBe(true)
})
