import { naturalKey, order, transcript, turns, actions } from '../../support/oracle.ts'
import { NEXT_SECRET, SECRET, type Event } from '../../support/app.ts'
import { ATTEMPTS } from '../configuration.ts'
import { DEAD, DELIVERED, PENDING } from '../books.ts'
import type { Fault } from '../fault.ts'
import type { Evidence } from './evidence.ts'

const SECRETS: Readonly<Record<string, string>> = { app: SECRET, books: NEXT_SECRET }
const FINAL = /^turn\.(completed|failed|ended|settled)$/

/** I1, I3: what one thing is called never changes, nor does what is said of it. */
export function sameIds({ world: { app, tally } }: Evidence): Fault[] {
  const faults: Fault[] = []
  const keys = new Map<string, string>()
  const said = new Map<string, string>()
  const ids = new Map<string, string>()
  for (const event of app.callbacks.flatMap(({ events }) => events)) {
    const key = naturalKey(event)
    const other = ids.get(key) ?? event.id
    if (other !== event.id)
      faults.push({ invariant: 'I3', message: `${key} came as ${other} and ${event.id}` })
    if ((keys.get(event.id) ?? key) !== key)
      faults.push({ invariant: 'I3', message: `${event.id} means ${keys.get(event.id)} and ${key}` })
    const body = lastingBody(event)
    if ((said.get(event.id) ?? body) !== body) {
      tally.add('ids with two bodies')
      faults.push({ invariant: 'I3', message: `${event.id} said ${said.get(event.id)} and then ${body}` })
    }
    ids.set(key, event.id)
    keys.set(event.id, key)
    said.set(event.id, body)
  }
  return faults
}

/** What must be the same in every attempt. Beside a frame stands what we know of its session at the time. */
function lastingBody({ type, timestamp, session_id, data }: Event): string {
  const lasting = data.payload === undefined ? data : { ...data, session: null }
  return JSON.stringify([type, timestamp, session_id, lasting])
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
    order(world.app.delivered(handler).filter((event) => !late(handler, event))).map((message) => ({
      invariant: 'I12',
      message: `${handler}: ${message}`,
    })),
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

/** I1: every event of the service reached the handler that selects everything. */
export function whole({ world, ledger }: Evidence): Fault[] {
  const events = world.app.delivered('app')
  const faults = [
    ...(world.gaps ? [] : transcript(ledger, events, {})),
    ...turns(ledger, events, {}),
    ...actions(ledger, events, {}),
  ]
  return faults.map((message) => ({ invariant: 'I1', message }))
}

/** I1 and I10: every delivery has ended, as its handler says too, or is dead for a reason. */
export function delivered({ world, deliveries }: Evidence): Fault[] {
  const taken = new Map(
    ['app', 'books'].map((name) => [name, new Set(world.app.delivered(name).map(({ id }) => id))]),
  )
  const faults: Fault[] = []
  for (const { fact_id: id, handler, status, attempts, log, type } of deliveries) {
    const what = `${type} ${id} for ${handler}`
    if (status === PENDING) faults.push({ invariant: 'I1', message: `${what} is pending` })
    if (status === DELIVERED && taken.get(handler)?.has(id) !== true)
      faults.push({ invariant: 'I1', message: `${what} counts as delivered and was never taken` })
    if (status !== DEAD) continue
    const deadLettered = world.mood.deadLettered.has(`${handler}/${id}`)
    if (attempts < ATTEMPTS && !deadLettered)
      faults.push({ invariant: 'I10', message: `${what} is dead after ${attempts} tries: ${log}` })
  }
  return faults
}
