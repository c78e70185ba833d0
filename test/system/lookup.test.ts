import type { LookupFunction } from 'node:net'
import { expect, it } from 'vitest'
import { createLookup } from '../../src/system/lookup.ts'

it('asks for the addresses of a name once at a time, and gives each connection the answer', () => {
  const asked: { name: string; answer: Parameters<LookupFunction>[2] }[] = []
  const lookup = createLookup((name, _options, answer) => asked.push({ name, answer }))
  const answers: string[] = []
  const ask = (name: string, family = 0): void =>
    lookup(name, { family }, (error, address) =>
      answers.push(`${name}: ${error?.message ?? JSON.stringify(address)}`),
    )
  ask('hangs')
  ask('hangs')
  ask('hangs', 4)
  ask('works')
  expect(asked.map(({ name }) => name)).toEqual(['hangs', 'hangs', 'works'])
  asked[2]?.answer(null, '10.0.0.1', 4)
  expect(answers).toEqual(['works: "10.0.0.1"'])
  asked[0]?.answer(new Error('no answer'), '')
  expect(answers).toEqual(['works: "10.0.0.1"', 'hangs: no answer', 'hangs: no answer'])
  ask('hangs')
  expect(asked).toHaveLength(4)
})
