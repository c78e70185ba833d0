import type { CallEvent } from '../../src/core/call-machine.ts'
import { describe, expect, it } from 'vitest'
import { ERROR, output, toolWorld } from './world.ts'

const never = (): Promise<never> => new Promise(() => undefined)

/** Crashes before the step of that event is stored. */
function crashBefore(world: ReturnType<typeof toolWorld>, type: CallEvent['type']) {
  world.beforeStep = ({ event }) => (event.type === type ? never() : Promise.resolve())
}

describe('a crash', () => {
  it('before the run was stored: the tool runs once, certainly', async () => {
    const world = toolWorld()
    crashBefore(world, 'run_begun')
    await world.found()
    expect(world.runs).toEqual([])
    await world.crash()
    await world.clock.advance(5000)
    expect(world.runs.map(({ attempt, uncertain }) => [attempt, uncertain])).toEqual([[1, false]])
    expect(await world.facts()).toEqual(['call.answered'])
  })

  it('while the tool ran: it runs again, with the same call, marked as uncertain', async () => {
    const world = toolWorld()
    world.run = never
    await world.found()
    world.run = async () => output('again')
    await world.crash()
    await world.clock.advance(5000)
    expect(world.runs.map(({ callId, attempt, uncertain }) => [callId, attempt, uncertain])).toEqual([
      ['call_1', 1, false],
      ['call_1', 2, true],
    ])
    expect(world.service.answers.map(({ answer }) => answer)).toEqual([{ output: 'again' }])
  })

  it('while a tool ran that may not run twice: the fixed error, and no second run', async () => {
    const world = toolWorld({ spec: { afterCrash: 'fail' } })
    world.run = never
    await world.found()
    await world.crash()
    await world.clock.advance(5000)
    expect([world.runs.length, world.service.answers.map(({ answer }) => answer)]).toEqual([
      1,
      [{ error: ERROR }],
    ])
  })

  // [fault tool-1]
  it('after the tool ran and before its result was stored: as if it had been running', async () => {
    const world = toolWorld()
    crashBefore(world, 'result_fixed')
    await world.found()
    expect([world.runs.length, world.service.answers.length]).toEqual([1, 0])
    await world.crash()
    await world.clock.advance(5000)
    expect(world.runs.map(({ uncertain }) => uncertain)).toEqual([false, true])
  })

  // [fault tool-2]
  it('after the result was stored and before it was posted: posted, not run again', async () => {
    const world = toolWorld()
    world.service.reply = never
    await world.found()
    expect(await world.call()).toMatchObject({ state: 'finished', posts: 0 })
    world.service.answers.length = 0
    world.service.reply = (callId) => {
      world.service.waiting.delete(callId)
      return 'delivered'
    }
    await world.crash()
    await world.clock.advance(5000)
    expect(world.runs).toHaveLength(1)
    expect(world.service.answers).toEqual([{ callId: 'call_1', answer: { output: '42' }, key: 'call_1' }])
  })

  it('after a posting that was taken and before its reply: read first, and not posted again', async () => {
    const world = toolWorld()
    world.service.reply = (callId) => {
      world.service.waiting.delete(callId)
      return never()
    }
    await world.found()
    await world.crash()
    await world.clock.advance(5000)
    expect([world.runs.length, world.service.answers.length]).toEqual([1, 1])
    expect(await world.call()).toMatchObject({ state: 'answered', outcome: 'unknown' })
  })

  it('after the reply and before it was stored: one fact, one posting', async () => {
    const world = toolWorld()
    crashBefore(world, 'post_accepted')
    await world.found()
    await world.crash()
    await world.clock.advance(5000)
    expect(world.service.answers).toHaveLength(1)
    expect(await world.facts()).toEqual(['call.answered'])
  })

  it('before the end was stored: the end comes later, once', async () => {
    const world = toolWorld()
    crashBefore(world, 'answered')
    await world.found()
    await world.clock.advance(5000)
    expect(await world.facts()).toEqual([])
    await world.crash()
    await world.clock.advance(10_000)
    expect(world.service.answers).toHaveLength(1)
    expect(await world.facts()).toEqual(['call.answered'])
  })

  it('between not_delivered and the follow-up message: the follow-up message is sent', async () => {
    const world = toolWorld()
    world.service.reply = () => 'not_delivered'
    world.service.message = never
    await world.found()
    world.service.message = () => undefined
    await world.crash()
    await world.clock.advance(5000)
    expect([world.service.answers.length, world.service.messages.length]).toEqual([1, 1])
    expect(await world.facts()).toEqual(['call.not_delivered'])
  })

  it('long ago: a call whose action is no longer listed causes no run and no posting', async () => {
    const world = toolWorld()
    world.run = never
    await world.found()
    world.service.waiting.clear()
    await world.crash()
    await world.clock.advance(5000)
    expect([world.runs.length, world.service.answers.length]).toEqual([1, 0])
    expect(await world.call()).toMatchObject({ state: 'failed', outcome: 'expired' })
  })
})
