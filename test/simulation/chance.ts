import type { Random } from '../../src/std/ports.ts'

/**
 * Chance that can be repeated (mulberry32). Each concern draws from a stream of its own, named by `label`, so that one
 * that draws more or less does not change what the others see.
 */
export class Chance implements Random {
  #state: number

  constructor(seed: number, label: string) {
    this.#state = Math.imul(seed ^ hashOf(label), 0x9e3779b1) | 0
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  hex(bytes: number): string {
    let text = ''
    while (text.length < bytes * 2)
      text += Math.floor(this.next() * 2 ** 32)
        .toString(16)
        .padStart(8, '0')
    return text.slice(0, bytes * 2)
  }

  /** True with the probability `p`. */
  is(p: number): boolean {
    return this.next() < p
  }

  /** A whole number from `least` to `most`, both included. */
  int(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1))
  }

  /** One of the entries, each as often as its weight says. */
  draw<T>(entries: readonly (readonly [weight: number, entry: T])[]): T {
    let left = this.next() * entries.reduce((sum, [weight]) => sum + weight, 0)
    const drawn = entries.find(([weight]) => (left -= weight) < 0) ?? entries[0]
    if (drawn === undefined) throw new RangeError('nothing to draw from')
    return drawn[1]
  }

  pick<T>(list: readonly T[]): T {
    const one = list[Math.floor(this.next() * list.length)]
    if (one === undefined) throw new RangeError('nothing to pick from')
    return one
  }

  some<T>(list: readonly T[], p: number): T[] {
    return list.filter(() => this.is(p))
  }
}

function hashOf(label: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < label.length; at++) hash = Math.imul(hash ^ label.charCodeAt(at), 0x01000193)
  return hash
}
