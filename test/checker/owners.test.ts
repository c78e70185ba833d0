import { describe, expect, test } from 'vitest'
import { alone, inTurn, warned, type Act, type RunOf } from './owners.ts'

const act = (owner: string, from: number, until: number | null): Act => ({
  subject: 'session 1',
  owner,
  from,
  until,
})

const run = (act: Act, more: Partial<RunOf> = {}): RunOf => ({
  uncertain: false,
  answered: 200,
  ...act,
  ...more,
})

describe('two processes that act for one session', () => {
  test('one after the other are right', () => {
    expect(alone([act('a', 0, 1000), act('b', 1000, 2000)], () => false)).toEqual([])
  })

  test('at once are found, unless it is excused', () => {
    const acts = [act('b', 500, 2000), act('a', 0, null)]
    expect(alone(acts, () => false)).toMatchObject([{ invariant: 'I8' }])
    expect(alone(acts, ({ owner }) => owner === 'a')).toEqual([])
  })
})

describe('two processes that take turns', () => {
  const acts = [act('a', 0, 10), act('b', 200, 210), act('a', 400, 410)]

  test('are found when the first goes on at once, unless it is excused', () => {
    expect(inTurn(acts, () => false)).toMatchObject([{ invariant: 'I8' }])
    expect(inTurn(acts, () => true)).toEqual([])
  })

  test('are right when the lease may have come back', () => {
    expect(inTurn([...acts.slice(0, 2), act('a', 1900, 1910)], () => false)).toEqual([])
  })
})

describe('a tool that two processes run', () => {
  test('is right when the second is marked uncertain', () => {
    expect(warned([run(act('a', 0, null)), run(act('b', 500, 900), { uncertain: true })])).toEqual([])
  })

  test('is right when the first is known to have failed', () => {
    expect(warned([run(act('a', 0, 100), { answered: 500 }), run(act('b', 500, 900))])).toEqual([])
  })

  test.for([
    ['was answered', act('a', 0, 100), 200],
    ['was cut', act('a', 0, 100), null],
    ['still goes on', act('a', 0, 9000), 500],
  ] as const)('is found when the first %s', ([, first, answered]) => {
    expect(warned([run(first, { answered }), run(act('b', 500, 900))])).toMatchObject([{ invariant: 'I8' }])
  })
})
