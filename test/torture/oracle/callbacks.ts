import { deliveries as ended, statusOf } from '../../checker/deliveries.ts'
import type { Fault } from '../../checker/history.ts'
import { actions, contents, identities, order, transcript, turns } from '../../checker/reports.ts'
import { NEXT_SECRET, SECRET, type Event } from '../../support/app.ts'
import { ATTEMPTS } from '../configuration.ts'
import { DEAD } from '../books.ts'
import type { Evidence } from './evidence.ts'

const SECRETS: Readonly<Record<string, string>> = { app: SECRET, books: NEXT_SECRET }
const FINAL = /^turn\.(completed|failed|ended|settled)$/

/** I1, I3: what one thing is called never changes, nor does what is said of it. */
export function sameIds({ world: { app, tally } }: Evidence): Fault[] {
  const events = app.callbacks.flatMap(({ events }) => events)
  const faults = [...identities(events), ...contents(events)]
  if (faults.length > 0) tally.add('ids with two meanings', faults.length)
  return faults
}

/** The sender has the handler's secret. */
export function signed({ world: { app } }: Evidence): Fault[] {
  return app.callbacks
    .filter(({ name, signedWith }) => !signedWith.includes(SECRETS[name] ?? ''))
    .map(({ name, id }) => ({ invariant: 'signature', message: `${name} got ${id} without its signature` }))
}

/** I12, for what did not die in between: a dead letter that is brought back comes late, as it should. */
export function inOrder({ world, deliveries }: Evidence): Fault[] {
  for (const { fact_id: id, handler, status } of deliveries)
    if (status === DEAD) world.dead.add(`${handler}/${id}`)
  const late = (handler: string, { id }: Event): boolean => world.dead.has(`${handler}/${id}`)
  return ['app', 'books'].flatMap((handler) =>
    order(world.app.delivered(handler).filter((event) => !late(handler, event))),
  )
}

/** I7: at the moment of a callback the turn was over. */
export function notAhead({ world: { app }, ledger }: Evidence): Fault[] {
  const over = new Map(ledger.turns.map((turn) => [turn.id, turn]))
  const faults: Fault[] = []
  for (const { at, events } of app.callbacks) {
    for (const { type, data } of events) {
      if (!FINAL.test(type)) continue
      const id = String(data.turn?.id)
      const turn = over.get(id)
      const came = performance.timeOrigin + at
      if (turn?.completed_at === null || (turn !== undefined && turn.completed_at > came))
        faults.push({ invariant: 'I7', message: `${type} of ${id} came before the turn was over` })
      if (type === 'turn.settled' && data.turn?.artifacts === 'pending')
        faults.push({ invariant: 'I7', message: `turn.settled of ${id} while its artifacts were pending` })
    }
  }
  return faults
}

/** Every event of the service reached the handler that selects everything. */
export function whole({ world, ledger }: Evidence): Fault[] {
  const events = world.app.delivered('app')
  return [
    ...(world.gaps ? [] : transcript(ledger, events)),
    ...turns(ledger, events),
    ...actions(ledger, events),
  ]
}

export function delivered({ world, deliveries }: Evidence): Fault[] {
  const taken = new Set(
    ['app', 'books'].flatMap((name) => world.app.delivered(name).map(({ id }) => `${name}/${id}`)),
  )
  const spent = new Set(
    deliveries.flatMap(({ fact_id: id, handler, attempts }) =>
      attempts < ATTEMPTS ? [] : `${handler}/${id}`,
    ),
  )
  return ended(
    deliveries.map(({ fact_id: id, type, handler, status }) => ({
      id,
      type,
      handler,
      status: statusOf(status),
    })),
    (handler, id) => {
      const key = `${handler}/${id}`
      return {
        taken: taken.has(key),
        heard: true,
        givenUp: spent.has(key) || world.mood.deadLettered.has(key),
      }
    },
  )
}
