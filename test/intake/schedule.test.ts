import { expect, it } from 'vitest'
import type { Hint } from '../../src/core/hint.ts'
import { readSession, readTurn } from '../../src/core/wire.ts'
import type { KnownTurn } from '../../src/core/store.ts'
import { allShards } from '../../src/core/shards.ts'
import { createExpectations, FrameWaits } from '../../src/sidecar/intake/schedule.ts'

/** What a channel says, on a clock that is moved by hand. */
function open() {
  let now = 1000
  return {
    expectations: createExpectations({ steady: () => now }, allShards()),
    since: now,
    pass: (ms: number) => void (now += ms),
  }
}

const sessionIs = (status: string, ...calls: string[]) =>
  readSession(
    {
      id: 's',
      status,
      created_at: 1,
      updated_at: 2,
      required_actions: calls.map((call_id) => ({ type: 'question', turn_id: 't', call_id, created_at: 2 })),
    },
    () => undefined,
  )

const turnIs = (id: string, status: string): KnownTurn => ({
  turn: readTurn({ id, status, created_at: 1 }, 's'),
  read: true,
  final: status === 'completed',
  settled: false,
  endedFrameAt: null,
  finalFor: null,
  finalFact: false,
})

const said = (subject: string): Hint => ({
  sessionId: 's',
  channel: 'stream',
  at: 1,
  scope: 'turns',
  delay: 0,
  subject,
})

const idle = sessionIs('idle')

it.for([
  { subject: 'turn.started/t', before: [], after: [turnIs('t', 'completed')], scope: 'turns' },
  { subject: 'turn.final/t', before: [], after: [turnIs('t', 'completed')], scope: 'turns' },
] as const)('$subject is expected until a read shows it', ({ subject, before, after, scope }) => {
  const { expectations, since, pass } = open()
  expectations.hinted([said(subject)], [])
  pass(500)
  expect(expectations.turnsOf('s')).toEqual(['t'])
  expect(expectations.weigh(idle, before, null)).toEqual({ since, scope })
  expect(expectations.weigh(idle, after, null)).toBeNull()
  expect(expectations.turnsOf('s')).toEqual([])
  expect(expectations.weigh(idle, before, null)).toBeNull()
})

it('an action is expected until its session shows it, and its end until its session no longer shows it', () => {
  const { expectations } = open()
  const works = [turnIs('t', 'working')]
  expectations.hinted([said('action.required/c')], [])
  expect(expectations.weigh(sessionIs('working'), works, null)?.scope).toBe('session')
  expect(expectations.weigh(sessionIs('requires_action', 'c'), works, null)).toBeNull()
  expectations.hinted([said('action.resolved/c')], [])
  expect(expectations.weigh(sessionIs('requires_action', 'c'), works, null)?.scope).toBe('session')
  expect(expectations.weigh(sessionIs('working'), works, null)).toBeNull()
})

it('an action that ended is not expected', () => {
  const { expectations } = open()
  expectations.hinted([said('action.required/c'), said('action.resolved/c')], [])
  expect(expectations.weigh(idle, [], null)).toBeNull()
})

it.for([
  { status: 'working', turns: [turnIs('t', 'completed')] },
  { status: 'requires_action', turns: [turnIs('t', 'working')] },
  { status: 'idle', turns: [turnIs('t', 'working')] },
  { status: 'failed', turns: [turnIs('t', 'completed'), turnIs('u', 'working')] },
])('a session whose status $status contradicts its turns is read again', ({ status, turns }) => {
  const { expectations, since, pass } = open()
  expect(expectations.weigh(sessionIs(status), turns, null)).toEqual({ since, scope: 'session' })
  pass(29_000)
  expect(expectations.weigh(sessionIs(status), turns, null)?.since).toBe(since)
  pass(2000)
  expect(expectations.weigh(sessionIs(status), turns, null)).toBeNull()
})

it('a state that equals the stored one is accepted after a second read', () => {
  const { expectations } = open()
  expect(expectations.weigh(idle, [turnIs('t', 'working'), turnIs('t', 'completed')], null)).toBeNull()
})

it('an expectation that no read confirms is dropped, and also one of a deleted session', () => {
  const { expectations, pass } = open()
  expectations.hinted([said('turn.started/t')], [])
  pass(31_000)
  expect(expectations.weigh(idle, [], null)).toBeNull()
  expect(expectations.turnsOf('s')).toEqual([])
  expectations.hinted([said('turn.started/t')], [])
  expectations.forget('s')
  expect(expectations.turnsOf('s')).toEqual([])
})

it('expectations over the limit are not stored', () => {
  const { expectations } = open()
  for (let session = 0; session < 300; session++)
    for (let turn = 0; turn < 200; turn++)
      expectations.hinted([{ ...said(`turn.started/${turn}`), sessionId: `s${session}` }], [])
  expectations.hinted(
    Array.from({ length: 200 }, (_, turn) => said(`turn.started/${turn}`)),
    [],
  )
  expect(expectations.turnsOf('s')).toEqual([])
  expect(expectations.turnsOf('s0')).toEqual(Array.from({ length: 100 }, (_, turn) => String(turn + 100)))
  expectations.forget('s0')
  expectations.forget('s')
  expectations.hinted([said('turn.started/t')], [])
  expect(expectations.turnsOf('s')).toEqual(['t'])
})

it('turns of deleted sessions do not keep later ones from waiting for their frames', () => {
  const waits = new FrameWaits(() => 0)
  const ended = (id: string): KnownTurn => ({ ...turnIs(id, 'completed'), finalFor: 0 })
  const many = Array.from({ length: 10_000 }, (_, nth) => ended(`t${nth}`))
  waits.begin(many, 1000)
  expect(waits.limit(true, 30_000)).toBe(0)
  expect(waits.limit(true, 40_000)).toBe(2000)
  waits.begin([ended('one')], 40_000)
  expect([waits.get('t1'), waits.get('one')]).toEqual([undefined, 40_000])
})
