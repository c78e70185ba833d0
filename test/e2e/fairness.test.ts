import { expect, test } from 'vitest'
import { SECRET } from '../support/app.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'
import { some } from '../support/full.ts'

/** What a callback takes, milliseconds. */
const TAKES = 200
/** Facts whose way is measured. */
const FACTS = 8
const DELTAS = 2000
/** Far less than one callback, and more than the noise of a busy machine, milliseconds. */
const NOISE = TAKES / 2
/** A machine that is busy in one round delays the facts of that round: one of so many must be without noise. */
const ROUNDS = 3

const THINK = Array.from({ length: DELTAS / FACTS }, (_, nth) => `think ${nth}`)

interface Measured {
  /** From the message to its callback, the median, milliseconds. */
  fact: number
  /** Transient events that reached the handler. */
  deltas: number
}

/**
 * One session streams its thoughts in `DELTAS` pieces while another sends a message now and then.
 */
async function measure(concurrency: number, events: string[]): Promise<Measured> {
  await using rig = await Rig.open({
    channels: ['stream'],
    handlers: (app) => [{ name: 'app', url: app.handlerUrl('app'), secret: SECRET, concurrency, events }],
  })
  const { app, client } = rig
  app.handle = () => ({ delay: TAKES })
  const [busy, quiet] = [await client.create(), await client.create()]
  const lags: number[] = []
  for (let nth = 0; nth < FACTS; nth++) {
    await client.send(busy, ...THINK)
    const sent = performance.now()
    await client.send(quiet, `say ${nth}`)
    const arrived = await until('the message', () =>
      app.callbacks.find(({ events: [event] }) => event?.data.payload?.['text'] === String(nth)),
    )
    lags.push(arrived.at - sent)
    await until('its answer', () => arrived.answered !== null)
  }
  const median = lags.toSorted((one, other) => one - other)[FACTS / 2] ?? 0
  return { fact: median, deltas: app.seen().filter(({ type }) => type === 'agent.thinking').length }
}

// [fault callback-8]
test.for(some([16, 1]))(
  '2,000 transient events of one session delay no fact of another at concurrency %i',
  { timeout: 120_000 },
  async (concurrency) => {
    let delay = Infinity
    for (let round = 0; round < ROUNDS && delay >= NOISE; round++) {
      const without = await measure(concurrency, ['agent.message'])
      const among = await measure(concurrency, ['agent.message', 'agent.thinking'])
      expect(without.deltas).toBe(0)
      expect(among.deltas).toBeGreaterThan(0)
      delay = among.fact - without.fact
    }
    expect(delay).toBeLessThan(NOISE)
  },
)

/** A backlog of one session, in callbacks. */
const BACKLOG = 40
/** Callbacks of another session that a fact may see before its own: one under way, one that was next. */
const BEFORE = 4

test('at concurrency 1 the backlog of one session delays a fact of another by few callbacks', async () => {
  await using rig = await Rig.open({
    channels: ['stream'],
    handlers: (app) => [
      { name: 'app', url: app.handlerUrl('app'), secret: SECRET, concurrency: 1, events: ['agent.message'] },
    ],
  })
  const { app, client } = rig
  app.handle = () => ({ delay: TAKES })
  const [busy, quiet] = [await client.create(), await client.create()]
  await client.send(busy, ...Array.from({ length: BACKLOG }, (_, nth) => `say ${nth}`))
  await until('the backlog to be at work', () => app.callbacks.length >= 2)
  const before = app.callbacks.length
  await client.send(quiet, 'say quiet')
  await until('the message', () =>
    app.callbacks.some(({ events: [event] }) => event?.data.payload?.['text'] === 'quiet'),
  )
  expect(app.callbacks.length - before).toBeLessThanOrEqual(BEFORE + 1)
})
