import { expect, test } from 'vitest'
import { needsOf } from '../../src/cli/status/needs.ts'
import type { JsonObject } from '../../src/std/json.ts'

const textsOf = (status: JsonObject): string[] =>
  needsOf({ status, handlers: [], actions: [], pending: [], now: 0 }).map(({ text }) => text)

test('a leader that is not seen needs attention, by its name and id', () => {
  const replica = { id: 'a1b2c3d4e5f6', name: 'vm', leader: true, configuration: null }
  expect(textsOf({ replicas: [{ ...replica, seen_seconds_ago: 7.9 }] })).toEqual([])
  expect(textsOf({ replicas: [{ ...replica, seen_seconds_ago: 9.2 }] })).toEqual([
    'the leader vm a1b2c3d4 was last seen 9 s ago',
  ])
  expect(textsOf({ replicas: [{ ...replica, leader: false, seen_seconds_ago: 9.2 }] })).toEqual([])
  expect(textsOf({ replicas: [{ ...replica, self: true, seen_seconds_ago: 9.2 }] })).toEqual([])
})

test('the last session slot needs attention', () => {
  expect(textsOf({ slots: { used: 24, limit: 25 } })).toEqual([])
  expect(textsOf({ slots: { used: 25, limit: 25 } })).toEqual([
    '25 sessions, and service.session_slots is 25: the service may refuse new ones',
  ])
  expect(textsOf({ slots: { used: 40, limit: 25 } })).toEqual([
    '40 sessions, and service.session_slots is 25: the service may refuse new ones',
  ])
  expect(textsOf({ slots: { used: 25, limit: null } })).toEqual([])
})
