/** How often each outcome was. */
export class Tally {
  readonly counts = new Map<string, number>()

  note(outcome: string, times = 1): void {
    this.counts.set(outcome, (this.counts.get(outcome) ?? 0) + times)
  }

  toString(): string {
    return [...this.counts].map(([outcome, times]) => `${times} ${outcome}`).join(', ')
  }
}
