import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { backoff } from '../../src/std/backoff.ts'
import { DeadLetter } from '../../src/core/errors.ts'
import type { Fact } from '../../src/core/fact.ts'
import type { CallbackEvent, ModuleHandler } from '../../src/core/handler.ts'
import { createModuleTarget } from '../../src/sidecar/deliver/targets/module.ts'
import type { Verdict } from '../../src/sidecar/deliver/targets/verdict.ts'
import { VirtualClock } from '../support/clock.ts'
import { turnFact } from '../support/fact.ts'
import { keepingLog, seededRandom } from '../support/ports.ts'
import { plainTracer } from '../../src/core/trace.ts'
import { SPEC } from './world.ts'

function target(handle: ModuleHandler, more: Partial<Fact> = {}) {
  const clock = new VirtualClock()
  const log = keepingLog()
  const made = createModuleTarget(SPEC, handle, { clock, log, tracer: plainTracer(seededRandom()) })
  const fact = { ...turnFact('turn.completed', 'trn_1', 'ses_1', more), pos: 1 }
  return {
    clock,
    log,
    abort: made.abort,
    send: () => new Promise<Verdict>((resolve) => made.send([{ fact, attempt: 2, session: null }], resolve)),
  }
}

describe('a handler in this process', () => {
  it('gets the callback as it would over HTTP, its attempt, a signal and a log', async () => {
    const seen: [CallbackEvent, number][] = []
    const world = target((event, { attempt, log, signal }) => {
      log.info('took it', { aborted: signal.aborted })
      seen.push([event, attempt])
    })
    expect(await world.send()).toMatchObject({ kind: 'delivered' })
    expect(seen).toMatchObject([
      [{ type: 'turn.completed', session_id: 'ses_1', delivery: { attempt: 2, handler: 'app' } }, 2],
    ])
    expect(world.log.lines).toMatchObject([
      { message: 'took it', details: { handler: 'app', aborted: false } },
    ])
  })

  it('gets numbers as JSON.parse gives them, however long they are', async () => {
    const seen: unknown[] = []
    const world = target((event) => void seen.push(event.data), {
      body: '{"amount":12345678901234567890}',
    })
    await world.send()
    expect(seen).toEqual([{ amount: 12345678901234567000 }])
  })

  it.each([
    ['returns nothing', () => undefined, 'delivered'],
    ['returns a verdict', () => ({ verdict: 'dead' }), 'dead'],
    ['asks for another try', async () => ({ verdict: 'retry' }), 'retry'],
    [
      'throws',
      () => {
        throw new Error('no')
      },
      'retry',
    ],
    ['rejects with no Error', () => Promise.reject('no'), 'retry'],
    [
      'gives the event up',
      () => {
        throw new DeadLetter()
      },
      'dead',
    ],
    [
      'gives the event up by the class of another copy of this package',
      () => {
        throw Object.assign(new Error('never'), { name: 'DeadLetter' })
      },
      'dead',
    ],
  ] as [string, ModuleHandler, string][])('that %s is %3$s', async (_, handle, kind) => {
    expect(await target(handle).send()).toMatchObject({ kind })
  })

  it('that hangs is abandoned at its timeout, and its signal is aborted', async () => {
    let aborted = false
    const world = target((_, { signal }) => {
      signal.addEventListener('abort', () => (aborted = true))
      return new Promise(() => undefined)
    })
    const verdict = world.send()
    await world.clock.advance(15_000)
    expect([await verdict, aborted]).toMatchObject([
      { kind: 'retry', error: 'no answer within 15000 ms' },
      true,
    ])
    expect(world.clock.waiting).toBe(0)
  })

  it('that hangs when we stop counts as not tried', async () => {
    const world = target(() => new Promise(() => undefined))
    const verdict = world.send()
    world.abort()
    expect(await verdict).toEqual({ kind: 'aborted' })
    expect(world.clock.waiting).toBe(0)
  })
})

it('waits are random below a bound that doubles each time, never over the limit nor below Retry-After', () => {
  fc.assert(
    fc.property(
      fc.record({ base: fc.integer({ min: 1, max: 10_000 }), max: fc.integer({ min: 1, max: 3_600_000 }) }),
      fc.integer({ min: 1, max: 2000 }),
      fc.nat(7_200_000),
      fc.integer(),
      (policy, attempt, floor, seed) => {
        const random = seededRandom(seed)
        const wait = backoff(policy, attempt, random, floor)
        expect(wait).toBeGreaterThanOrEqual(floor)
        expect(wait).toBeLessThanOrEqual(
          Math.max(floor, Math.min(policy.max, policy.base * 2 ** Math.min(attempt - 1, 40))),
        )
        expect(Number.isSafeInteger(wait)).toBe(true)
      },
    ),
  )
  const spread = Array.from({ length: 1000 }, (_, seed) =>
    backoff({ base: 1000, max: 60_000 }, 3, seededRandom(seed)),
  )
  expect([Math.min(...spread) < 200, Math.max(...spread) > 3800]).toEqual([true, true])
})
