/** A check cannot continue, with the reason; its remaining rules count as not tried. */
export class Stuck extends Error {
  constructor(why: string) {
    super(why)
    this.name = 'Stuck'
  }
}
