/** A check cannot go on, and says why; what it had not yet seen is not tried. */
export class Stuck extends Error {
  constructor(why: string) {
    super(why)
    this.name = 'Stuck'
  }
}
