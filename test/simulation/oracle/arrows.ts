import type { Sqlite } from '../../../src/sidecar/store/sqlite/open.ts'

/** Where a call may go from where it stands, written down apart from the program's own table. Staying is always allowed. */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  received: ['running', 'finished', 'failed'],
  running: ['received', 'deferred', 'finished', 'failed'],
  deferred: ['finished', 'failed'],
  finished: ['unconfirmed', 'refused', 'accepted', 'undelivered', 'answered', 'failed'],
  unconfirmed: ['refused', 'accepted', 'undelivered', 'answered', 'failed'],
  refused: ['refused, unconfirmed', 'failed'],
  'refused, unconfirmed': ['failed'],
  accepted: ['answered', 'failed'],
  undelivered: ['resent', 'not_delivered', 'failed'],
  resent: ['not_delivered', 'failed'],
}
/** The service has replied to an answer: the deadline of the call is no reason any more. */
const ANSWERED = ['refused', 'refused, unconfirmed', 'accepted', 'undelivered', 'resent']
const CLOSED = ['answered', 'not_delivered', 'failed']

interface Row {
  state: string
  deferred: number
  outcome: string | null
  unsure: number
  attempts: number
  uncertain: number
  result_text: string | null
}

/** Judges each step of each call, also where one transaction holds several: the database notes them (database.ts). */
export class Arrows {
  readonly #steps
  readonly #forget

  constructor(db: Sqlite) {
    this.#steps = db.prepare<[], { call_id: string; before: string; after: string }>(
      'SELECT call_id, before, after FROM call_steps ORDER BY rowid',
    )
    this.#forget = db.prepare('DELETE FROM call_steps')
  }

  /** What was wrong with the steps since it was asked last. */
  wrong(): string[] {
    const steps = this.#steps.all()
    if (steps.length === 0) return []
    this.#forget.run()
    return steps.flatMap(({ call_id: callId, before, after }) => {
      const why = wrongStep(JSON.parse(before) as Row, JSON.parse(after) as Row)
      return why === null ? [] : [`${callId} ${why}`]
    })
  }
}

function wrongStep(before: Row, after: Row): string | null {
  const [from, to] = [stageOf(before), stageOf(after)]
  if (CLOSED.includes(from)) return `was ${from} and is written again as ${to}`
  if (from !== to && ARROWS[from]?.includes(to) !== true) return `went from ${from} to ${to}`
  if (after.outcome === 'expired' && ANSWERED.includes(from)) return `expired, though it was ${from}`
  const begun = after.attempts > before.attempts
  if (begun && to !== 'running') return `began a run as ${to}`
  if (begun && from === 'running' && after.uncertain === 0) return 'runs again without `uncertain`'
  const replaced = before.result_text !== null && before.result_text !== after.result_text
  return replaced && to !== 'refused' ? 'has another result than was stored' : null
}

function stageOf({ state, deferred, outcome, unsure }: Row): string {
  if (state === 'running' && deferred === 1) return 'deferred'
  if (state !== 'finished') return state
  if (outcome === null) return unsure === 1 ? 'unconfirmed' : 'finished'
  if (outcome === 'refused') return unsure === 1 ? 'refused, unconfirmed' : 'refused'
  if (outcome === 'not_delivered') return unsure === 1 ? 'resent' : 'undelivered'
  return 'accepted'
}
