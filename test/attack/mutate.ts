import type { Random } from '../../src/std/ports.ts'

/** What text is made of that breaks readers: structure, numbers at the edge, names of the language, lone surrogates. */
const PIECES = [
  '"', '\\', '{', '}', '[', ']', ',', ':', '\n', '\r', '\r\n', '\u0000', '\ufeff', '\ud800', '\u2028',
  '-0', '1e999', '9007199254740993', '0x10', 'null', 'true', '"__proto__"', '"constructor"', '\\u0061', '{"a":'.repeat(50),
  '[[[[', 'id: 7\n', 'event: turn.ended\n', 'data: {}\n\n', 'retry: 1000000000000\n', ': ping\n', '../', '//evil.example/', '%2e%2e',
  '"id":1,"id":2,', '"__proto__":{"x":1},', '18446744073709551616', '1e-400', '\\ud800', '"toString"', '${PATH}', '\u202e',
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

/** Named as the language names its own things, and not to be taken for them. */
const NAMES = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'then', '', '$ref']

const nested = (depth: number): unknown =>
  depth === 0 ? null : depth % 2 === 0 ? [nested(depth - 1)] : { a: nested(depth - 1) }

const VALUES: readonly unknown[] = [
  null, true, false, 0, -1, 1.5, 1e300, -1e-300, 2 ** 53, 2 ** 63, '', 'x', '0', '\u0000', '\ud800', 'a\r\nb: c', '../..', '\u202e',
  '9'.repeat(400), 'https://evil.example/', [], {}, [[]], ['__proto__'], [null], { constructor: 1 }, { length: 1e9 }, { valueOf: 1 },
  nested(60), nested(400), 'a'.repeat(5000), '${PATH}', '{{last}}', '%00', '<img src=x>',
] // prettier-ignore

/** A value of JSON with some of what it holds dropped, retyped, renamed or moved. `rate`: how much of it. */
export function mutateValue(value: unknown, random: Random, rate = 1): unknown {
  if (random.next() < 0.04 * rate) return pick(random, VALUES)
  if (Array.isArray(value)) {
    const list = value.map((entry) => mutateValue(entry, random, rate))
    if (random.next() < 0.05 * rate) list.push(pick(random, VALUES))
    return list
  }
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).flatMap(([key, entry]) => {
    const chance = random.next()
    if (chance < 0.02 * rate) return []
    const name = chance < 0.04 * rate ? pick(random, [...NAMES, `${key}x`]) : key
    return [[name, mutateValue(entry, random, rate)] as const]
  })
  return Object.fromEntries(entries)
}

type Place = readonly (string | number)[]

/** The way to each value in `value`, itself left out. */
export function placesOf(value: unknown, at: Place = []): Place[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, entry]) => {
    const here = [...at, Array.isArray(value) ? Number(key) : key]
    return [here, ...placesOf(entry, here)]
  })
}

/**
 * A value of JSON with a few of its places dropped, retyped, renamed or moved. The rest is shared with the original, so that
 * a large value costs no more than a small one.
 */
export function mutatePlaces(value: unknown, places: readonly Place[], random: Random): unknown {
  let mutated = value
  for (let edits = 1 + whole(random, 6); edits > 0; edits--) {
    const other = valueAt(value, pick(random, places))
    mutated = edit(
      mutated,
      pick(random, places),
      pick(random, [...EDITS, () => ['=', other] as const]),
      random,
    )
  }
  return mutated
}

type Edit = readonly ['=', unknown] | readonly ['drop'] | readonly ['rename', string]

const EDITS: readonly ((random: Random) => Edit)[] = [
  (random) => ['=', pick(random, VALUES)],
  () => ['drop'],
  (random) => ['rename', pick(random, NAMES)],
]

function edit(
  value: unknown,
  [step, ...rest]: Place,
  make: (random: Random) => Edit,
  random: Random,
): unknown {
  // An earlier edit removed the position.
  if (step === undefined || typeof value !== 'object' || value === null || !Object.hasOwn(value, step))
    return value
  const one: Edit = rest.length > 0 ? ['=', edit(Reflect.get(value, step), rest, make, random)] : make(random)
  if (Array.isArray(value)) {
    const list: unknown[] = [...value]
    list.splice(Number(step), 1, ...(one[0] === '=' ? [one[1]] : []))
    return list
  }
  const entries = Object.entries(value).flatMap(([key, entry]): [string, unknown][] => {
    if (key !== step) return [[key, entry]]
    if (one[0] === 'drop') return []
    return one[0] === '=' ? [[key, one[1]]] : [[one[1], entry]]
  })
  return Object.fromEntries(entries)
}

function valueAt(value: unknown, place: Place): unknown {
  return place.reduce<unknown>((at, step) => Reflect.get(Object(at), step), value)
}

/** JSON text of a mutated value, itself mutated now and then: keys that come twice, halves, numbers beyond all measure. */
export function mutateJson(value: unknown, random: Random): string {
  const text = JSON.stringify(random.next() < 0.8 ? mutateValue(value, random, 2) : value) ?? ''
  return random.next() < 0.4 ? mutateText(text, random) : text
}
