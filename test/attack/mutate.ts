import type { Random } from '../../src/core/ports.ts'

/** What text is made of that breaks readers: structure, numbers at the edge, names of the language, lone surrogates. */
const PIECES = [
  '"', '\\', '{', '}', '[', ']', ',', ':', '\n', '\r', '\r\n', '\u0000', '\ufeff', '\ud800', '\u2028',
  '-0', '1e999', '9007199254740993', '0x10', 'null', 'true', '"__proto__"', '"constructor"', '\\u0061', '{"a":'.repeat(50),
  '[[[[', 'id: 7\n', 'event: turn.ended\n', 'data: {}\n\n', 'retry: 1000000000000\n', ': ping\n', '../', '//evil.example/', '%2e%2e',
] // prettier-ignore

export function whole(random: Random, below: number): number {
  return Math.floor(random.next() * below)
}

export function pick<T>(random: Random, from: readonly T[]): T {
  const one = from[whole(random, from.length)]
  if (one === undefined) throw new Error('there is nothing to pick from')
  return one
}

/** A text with some of it cut, doubled, swapped, flipped or replaced. It may come out the same. */
export function mutateText(text: string, random: Random): string {
  let mutated = text
  for (let edits = 1 + whole(random, 4); edits > 0; edits--) {
    const at = whole(random, mutated.length + 1)
    const to = Math.min(mutated.length, at + whole(random, 12))
    const part = mutated.slice(at, to)
    const instead = pick(random, [
      '',
      part + part,
      pick(random, PIECES),
      String.fromCharCode(whole(random, 0x250)),
      part.split('').toReversed().join(''),
    ])
    mutated = mutated.slice(0, at) + instead + mutated.slice(to)
  }
  return mutated
}

const VALUES: readonly unknown[] = [
  null, true, 0, -1, 1.5, 1e300, '', 'x', '\u0000', '../..', 'https://evil.example/', [], {}, [[]], ['__proto__'],
  { constructor: 1 }, 'a'.repeat(5000),
] // prettier-ignore

/** A value of JSON with some of what it holds dropped, retyped, renamed or moved. */
export function mutateValue(value: unknown, random: Random): unknown {
  if (random.next() < 0.04) return pick(random, VALUES)
  if (Array.isArray(value)) {
    const list = value.map((entry) => mutateValue(entry, random))
    if (random.next() < 0.05) list.push(pick(random, VALUES))
    return list
  }
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).flatMap(([key, entry]) => {
    const chance = random.next()
    if (chance < 0.02) return []
    const name = chance < 0.04 ? pick(random, ['__proto__', 'constructor', '', `${key}x`, '$ref']) : key
    return [[name, mutateValue(entry, random)] as const]
  })
  return Object.fromEntries(entries)
}
