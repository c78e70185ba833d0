import { describe, expect, test } from 'vitest'
import { answers } from './calls.ts'
import type { Posting } from './history.ts'

const output = (sent: number, arrived: number, status: number): Posting => ({
  call_id: 'call_1',
  kind: 'output',
  text: 'done',
  key: 'call_1',
  status,
  times: { sent, arrived },
})

const failure = (sent: number, arrived: number, more: Partial<Posting> = {}): Posting => ({
  ...output(sent, arrived, 200),
  kind: 'error',
  text: 'It could not be done.',
  key: 'call_1.error',
  ...more,
})

describe('answers in two ways', () => {
  test('an output that the network delays arrives after its error', () => {
    expect(answers([output(30, 31, 400), failure(40, 41), output(0, 50, 404)])).toEqual([])
  })

  test('an output that is sent after the error is found', () => {
    const postings = [output(0, 1, 400), failure(10, 11), output(20, 21, 404)]
    expect(answers(postings)).toMatchObject([{ invariant: 'I4' }])
  })

  test('an error that is sent before its output was refused is found', () => {
    expect(answers([failure(10, 11), output(0, 20, 400)])).toMatchObject([{ invariant: 'I4' }])
    expect(answers([output(0, 1, 200), failure(10, 11)])).toMatchObject([{ invariant: 'I4' }])
  })

  test('without times the order of arrivals counts', () => {
    const [first, error] = [output(0, 0, 400), failure(0, 0)].map((one) => ({ ...one, times: null }))
    if (first === undefined || error === undefined) throw new Error('two postings are given')
    expect(answers([first, error])).toEqual([])
    expect(answers([error, first])).toMatchObject([{ invariant: 'I4' }])
  })

  test('two keys of one answer, and one key of two answers, are found', () => {
    expect(answers([output(0, 1, 502), { ...output(2, 3, 200), key: 'other' }])).toMatchObject([
      { invariant: 'I3' },
    ])
    expect(answers([output(0, 1, 400), failure(2, 3, { key: 'call_1' })])).toMatchObject([
      { invariant: 'I3' },
    ])
  })
})
