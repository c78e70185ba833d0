/** What happened, counted by name. */
export class Tally {
  readonly #counts = new Map<string, number>()

  add(name: string, count = 1): void {
    if (count > 0) this.#counts.set(name, this.get(name) + count)
  }

  get(name: string): number {
    return this.#counts.get(name) ?? 0
  }

  /** Those whose names begin with `prefix`, the most frequent first; the names without it. */
  of(prefix: string): [name: string, count: number][] {
    return [...this.#counts]
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, count]): [string, number] => [name.slice(prefix.length), count])
      .sort(([, a], [, b]) => b - a)
  }

  sum(prefix: string): number {
    return this.of(prefix).reduce((total, [, count]) => total + count, 0)
  }

  /** Takes over what another counted. */
  join(other: Tally): void {
    for (const [name, count] of other.#counts) this.add(name, count)
  }
}
