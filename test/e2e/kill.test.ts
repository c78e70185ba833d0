import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { assertWhole } from '../support/oracle.ts'
import { PROFILES } from '../support/client.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

const CALL = 'call lookup_order {"order_id":"42"}'

describe.for(PROFILES)('killed (%s)', (details) => {
  test('killed between a run and its answer: the stored result is posted and the tool not run again', async () => {
    await using rig = await Rig.open({ details, process: true, tools: { lookup_order: {} } })
    // The answer's way is closed until the kill.
    rig.gateway.intercept = ({ method, url }) =>
      method === 'POST' && rig.client.answers(url) ? 'reset' : undefined
    const session = await rig.client.start(CALL, 'say {{last}}')
    await until('stored result', async () => (await rig.list('/api/calls'))[0]?.['state'] === 'finished')
    await rig.kill()
    rig.app.run = () => ({ body: 'something else' })
    rig.gateway.intercept = () => undefined
    await rig.start()
    await rig.client.reached(session, 'idle')
    await assertWhole(rig, { tools: ['lookup_order'] })
    expect(rig.app.runs).toHaveLength(1)
    expect(rig.emulator.ledger().answers).toMatchObject([{ output: 'lookup_order says {"order_id":"42"}' }])
  })

  test('killed after a posting whose reply it never saw: the same answer counts, once', async () => {
    await using rig = await Rig.open({ details, process: true, tools: { lookup_order: {} } })
    rig.emulator.faults.set({ lose_answer_replies: 1 })
    rig.gateway.intercept = ({ method, url }) =>
      method === 'POST' && rig.client.answers(url) && rig.emulator.ledger().answers.length > 0
        ? 'reset'
        : undefined
    await rig.client.start(CALL, 'say {{last}}')
    await until('taken answer', () => rig.emulator.ledger().answers.length === 1)
    await rig.kill()
    await rig.start()
    const answered = await rig.event('call.answered')
    expect(answered.data.call?.['call_id']).toBe(rig.emulator.ledger().answers[0]?.call_id)
    await assertWhole(rig, { tools: ['lookup_order'] })
    expect(rig.app.runs).toHaveLength(1)
  })

  test('killed while a tool runs: it runs again under the same key and is told that it is uncertain', async () => {
    await using rig = await Rig.open({ details, process: true, tools: { lookup_order: {} } })
    rig.app.run = (_run, nth) => (nth === 1 ? { hang: true } : { body: 'second' })
    await rig.client.start(CALL)
    await until('run', () => rig.app.runs.length === 1)
    await rig.kill()
    await rig.start()
    await assertWhole(rig, { tools: ['lookup_order'] })
    expect(rig.app.runs.map(({ call }) => [call.attempt, call.uncertain])).toEqual([
      [1, false],
      [2, true],
    ])
    expect(new Set(rig.app.runs.map(({ headers }) => headers['idempotency-key'])).size).toBe(1)
    expect(rig.emulator.ledger().answers).toMatchObject([{ output: 'second' }])
  })

  test('after_crash: fail runs at most once, and posts the fixed error', async () => {
    await using rig = await Rig.open({
      details,
      process: true,
      tools: { lookup_order: { after_crash: 'fail' } },
    })
    rig.app.run = () => ({ hang: true })
    await rig.client.start(CALL)
    await until('run', () => rig.app.runs.length === 1)
    await rig.kill()
    await rig.start()
    await assertWhole(rig, { tools: ['lookup_order'] })
    expect(rig.app.runs).toHaveLength(1)
    expect(rig.emulator.ledger().answers).toMatchObject([
      { output: null, error: 'The tool could not complete this request.' },
    ])
  })

  test('SIGTERM lets what is under way end, exits with 0, and the next start repeats nothing', async () => {
    await using rig = await Rig.open({ details, process: true })
    rig.app.handle = () => ({ delay: 30 })
    await rig.client.start('say 1', 'say 2', 'say 3', 'say 4')
    await until('first callback', () => rig.app.callbacks.length > 0)
    await rig.stop()
    rig.app.handle = () => ({})
    await rig.start()
    await assertWhole(rig)
    const ids = rig.app.callbacks.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
  })
})

const KILLS = 20
const TURNS = 100
/** A run lives so long at most before it is killed, milliseconds. */
const LONGEST_LIFE = 700

/**
 * The issue's own condition. The seed decides when each kill comes; what the machine makes of it differs from run to
 * run. SEED=… repeats one.
 */
test.for(PROFILES)(
  `killed ${KILLS} times at random under a load of ${TURNS} turns: nothing lost, nothing under a second id (%s)`,
  { timeout: 90_000 },
  async (details) => {
    const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
    console.log(`SEED=${seed}`)
    const random = mulberry(seed)
    await using rig = await Rig.open({
      process: true,
      details,
      tools: { lookup_order: {}, second: {} },
      emulator: { limits: { readsBurst: 100_000, readsPerSecond: 1000 } },
    })
    // Now and then a handler or a tool fails, so that kills meet retries as well.
    rig.app.handle = () => (random() < 0.05 ? { status: 500 } : {})
    rig.app.run = ({ call }) =>
      random() < 0.1 ? { status: 503 } : { body: `${call.name} ${call.call_id}`, delay: random() * 20 }
    let over = false
    const load = runLoad(rig, random).finally(() => {
      over = true
    })
    for (let kill = 0; kill < KILLS; kill++) {
      await pause(random() * LONGEST_LIFE)
      await rig.kill()
      await rig.start()
    }
    await until('end of the load', () => over, 60_000)
    await load
    expect(rig.emulator.ledger().turns).toHaveLength(TURNS)
    await assertWhole(rig, { tools: ['lookup_order', 'second'], patience: 30_000 })
    const mixedUp = rig.emulator
      .ledger()
      .answers.filter(({ call_id, output }) => output !== null && !output.endsWith(call_id))
    expect(mixedUp).toEqual([])
  },
)

async function runLoad(rig: Rig, random: () => number): Promise<void> {
  const scripts = [
    ['say Hello', 'write outputs/a.txt x'],
    [CALL, 'say {{last}}'],
    [`${CALL} & call second {"n":1}`, 'wait 20ms', CALL],
    ['wait 30ms', 'fail out of disk'],
    ['say one', 'shell ls', 'say two'],
  ]
  const sessions = await Promise.all(Array.from({ length: 10 }, () => rig.client.create()))
  await Promise.all(
    sessions.map(async (session) => {
      for (let turn = 0; turn < TURNS / sessions.length; turn++) {
        await pause(random() * 4000)
        await rig.client.send(session, ...(scripts[Math.floor(random() * scripts.length)] ?? []))
        await until(
          'turn',
          () => {
            const { turns } = rig.emulator.ledger(Number.MAX_SAFE_INTEGER)
            const mine = turns.filter(({ session_id }) => session_id === session)
            return (
              mine.length === turn + 1 &&
              mine.every(({ artifacts }) => artifacts !== null && artifacts !== 'pending')
            )
          },
          60_000,
        )
      }
    }),
  )
}

/** A small generator of chance that a seed repeats. */
function mulberry(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
