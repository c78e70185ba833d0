/** A check cannot continue, for the reason in the message. Its rules without a verdict count as not tried. */
export class Stuck extends Error {
  constructor(why: string) {
    super(why)
    this.name = 'Stuck'
  }
}
