import { describe, expect, it } from 'vitest'
import { ServiceError } from '../../src/core/errors.ts'
import type { ToolResult } from '../../src/core/tool.ts'
import { ERROR, output, refusal, toolWorld } from './world.ts'

type World = ReturnType<typeof toolWorld>

const never = (): Promise<never> => new Promise(() => undefined)

describe('a function call', () => {
  it('is run and answered, and each step is stored before its effect can be seen', async () => {
    const world = toolWorld()
    await world.found()
    await world.clock.advance(5000)
    expect(world.trace).toEqual([
      'step run_begun',
      'run',
      'step result_fixed',
      'post',
      'step post_accepted',
      'read',
      'step answered',
    ])
    expect(world.service.answers).toEqual([{ callId: 'call_1', answer: { output: '42' }, key: 'call_1' }])
    expect(await world.facts()).toEqual(['call.answered'])
    expect(world.reports).toMatchObject([
      { tool: 'lookup', outcome: 'answered', call: { outcome: 'delivered' } },
    ])
    expect(world.runs[0]).toMatchObject({
      callId: 'call_1',
      arguments: { order: 42 },
      attempt: 1,
      uncertain: false,
    })
  })

  it('whose start was stored when another process owned its session is not run', async () => {
    const world = toolWorld()
    world.beforeStep = async ({ event }) => {
      if (event.type === 'run_begun') world.owns = false
    }
    await world.found()
    await world.clock.advance(60_000)
    expect(world.trace).toEqual(['step run_begun', 'step run_withdrawn'])

    world.owns = true
    await world.crash()
    await world.clock.advance(5000)
    expect(world.runs).toMatchObject([{ attempt: 1, uncertain: false }])
  })

  it('that was stored slowly, while the service was unreachable, has not run in a process that crashed', async () => {
    const world = toolWorld({ spec: { afterCrash: 'fail' } })
    world.service.waiting.add('call_1')
    world.beforeAdd = async () => {
      await world.clock.advance(6000)
      world.service.unreachable = new ServiceError({ code: 'unreachable', status: 0, message: 'no network' })
    }
    await world.takeOn(world.callAs('call_1'))
    await world.clock.settle()
    world.service.unreachable = null
    await world.clock.advance(60_000)
    expect(world.runs).toMatchObject([{ callId: 'call_1', uncertain: false }])
  })

  it('that is found to be over while it is being stored does not run', async () => {
    const world = toolWorld({ spec: { concurrency: 1 } })
    const { promise: over, resolve: end } = Promise.withResolvers<{ kind: 'output'; output: string }>()
    world.run = async () => over
    await world.takeOn(world.callAs('call_1'))
    const { promise: slow, resolve: goOn } = Promise.withResolvers<void>()
    world.beforeAdd = () => slow
    // The tool has no free slot, so the call is stored as received.
    const taken = world.takeOn(world.callAs('call_2'))
    await world.clock.settle()
    world.host.actionsGone(['call_2'], 'resolved')
    await world.clock.settle()
    goOn()
    await taken
    end({ kind: 'output', output: '1' })
    await world.clock.advance(4000)
    expect(world.runs.map(({ callId }) => callId)).toEqual(['call_1'])
  })

  it('of one session runs beside the others', async () => {
    const world = toolWorld()
    world.run = never
    for (const id of ['call_1', 'call_2', 'call_3']) await world.found(id)
    expect(world.runs).toHaveLength(3)
  })

  it('that is new enough runs on the reading that found it; an older one is read again first', async () => {
    const world = toolWorld()
    await world.found('call_1')
    await world.found('call_old', { receivedAt: world.clock.now() - 5000 })
    expect(world.trace.indexOf('read')).toBeGreaterThan(world.trace.indexOf('run'))
    expect(world.runs.map(({ callId }) => callId)).toEqual(['call_1', 'call_old'])
  })

  // Each went round as fast as the store could say no, with a reading of its session and three lines of the log.
  it.each([
    { what: 'that is new', after: 0 },
    { what: 'whose session is to be read first', after: 6000 },
  ])('$what is tried now and then while the store refuses everything', async ({ after }) => {
    const world = toolWorld()
    world.beforeStep = () => Promise.reject(new Error('the disk is full'))
    for (const id of ['call_1', 'call_2', 'call_3'])
      await world.found(id, { receivedAt: world.clock.now() - after })
    await world.clock.advance(60_000)
    expect(world.trace.filter((what) => what === 'read').length).toBeLessThan(30)
    expect(world.log.lines.length).toBeLessThan(10)
    expect(world.runs).toEqual([])
    world.beforeStep = async () => undefined
    await world.clock.advance(6000)
    expect(world.runs).toHaveLength(3)
    await world.clock.advance(60_000)
    expect(world.service.answers).toHaveLength(3)
  })

  it('keeps the result of its tool while the store refuses writes', async () => {
    const world = toolWorld({ spec: { afterCrash: 'fail' } })
    world.run = async () => {
      world.beforeStep = () => Promise.reject(new Error('the disk is full'))
      return output('charged')
    }
    await world.found()
    await world.clock.advance(60_000)
    world.beforeStep = async () => undefined
    await world.clock.advance(6000)
    expect(world.runs).toHaveLength(1)
    expect(world.service.answers).toEqual([
      { callId: 'call_1', answer: { output: 'charged' }, key: 'call_1' },
    ])
  })

  it('whose result can never be stored does not delay a stop', async () => {
    const world = toolWorld()
    world.run = async () => {
      world.beforeStep = () => Promise.reject(new Error('the disk is full'))
      return output('42')
    }
    await world.found()
    await world.clock.advance(1000)
    let stopped = false
    void world.host.stop(2000).then(() => (stopped = true))
    await world.clock.advance(3000)
    expect(stopped).toBe(true)
    expect(world.clock.waiting).toBe(0)
  })

  it('whose reading lies in the future, since the wall clock was set back, is read again first', async () => {
    const world = toolWorld()
    await world.found('call_1', { receivedAt: world.clock.now() + 3_600_000 })
    expect(world.trace.indexOf('read')).toBeLessThan(world.trace.indexOf('run'))
    expect(world.trace).toContain('read')
    expect(world.runs).toHaveLength(1)
  })

  // [fault state-3]
  it('whose session is found deleted causes a read of that session', async () => {
    const world = toolWorld()
    world.service.gone = true
    await world.found('call_1', { receivedAt: world.clock.now() - 5000 })
    expect(world.hints).toMatchObject([{ sessionId: 'ses_1', scope: 'session', delay: 0 }])
    expect(await world.call()).toMatchObject({ state: 'failed', outcome: 'cancelled' })
  })

  it('that is no longer listed before it ran is not run, and expires', async () => {
    const world = toolWorld()
    world.service.authorized = false
    await world.found()
    world.service.waiting.delete('call_1')
    await world.clock.advance(10_000)
    world.service.authorized = true
    await world.clock.advance(10_000)
    expect(world.runs).toEqual([])
    expect(await world.call()).toMatchObject({ state: 'failed', outcome: 'expired' })
    expect(await world.facts()).toEqual(['call.failed'])
  })

  it('that waits for a slot is not run if a read no longer lists it', async () => {
    const world = toolWorld({ spec: { concurrency: 1 } })
    let end: () => void = () => undefined
    world.run = () => new Promise((resolve) => (end = () => resolve(output('42'))))
    await world.found('call_1')
    await world.found('call_2')
    world.service.waiting.delete('call_2')
    world.host.actionsGone(['call_2'], 'resolved')
    end()
    await world.clock.settle()
    expect(world.runs.map(({ callId }) => callId)).toEqual(['call_1'])
    expect(await world.call('call_2')).toMatchObject({ state: 'failed', outcome: 'expired' })
  })

  it('of a session that is deleted while it runs is cancelled', async () => {
    const world = toolWorld()
    let stopped = false
    world.run = (_, signal) => {
      signal.addEventListener('abort', () => (stopped = true))
      return never()
    }
    await world.found()
    world.host.actionsGone(['call_1'], 'deleted')
    await world.clock.settle()
    expect(stopped).toBe(true)
    expect(await world.call()).toMatchObject({ state: 'failed', outcome: 'cancelled' })
    expect(world.service.answers).toEqual([])
  })

  it('is not started with a rejected token, and causes no writes meanwhile', async () => {
    const world = toolWorld()
    world.service.authorized = false
    let asked = 0
    world.nextCall = (room) => {
      asked++
      return world.store.calls.nextDue(room)
    }
    await world.found()
    await world.clock.advance(60_000)
    expect(world.runs).toEqual([])
    expect(asked).toBeLessThan(30)
    world.service.authorized = true
    await world.clock.advance(10_000)
    expect(world.runs).toHaveLength(1)
  })

  it('is read less and less often while the service is unreachable, and continues afterwards', async () => {
    const world = toolWorld()
    await world.clock.advance(60_000)
    await world.found(
      'call_1',
      { receivedAt: world.clock.now() - 60_000, expiresAt: null },
      refusal(503, 'unavailable'),
    )
    await world.clock.advance(3_600_000)
    expect(world.trace.filter((entry) => entry === 'read').length).toBeLessThan(80)
    expect(world.runs).toEqual([])
    world.service.unreachable = null
    await world.clock.advance(120_000)
    expect(await world.call()).toMatchObject({ state: 'answered' })
  })

  it('whose tool is not configured any more is left alone until the service gives it up', async () => {
    const world = toolWorld()
    await world.found('call_1', { name: 'forgotten' })
    expect(world.service.answers).toEqual([])
    world.service.waiting.delete('call_1')
    world.host.actionsGone(['call_1'], 'resolved')
    await world.clock.settle()
    expect(await world.call()).toMatchObject({ state: 'failed', outcome: 'expired' })
  })
})

describe('a tool that fails', () => {
  it('is tried again with the same call, then the model gets the fixed error and nothing else', async () => {
    const world = toolWorld()
    world.run = async () => ({ kind: 'failed', error: 'password=hunter2 refused' })
    await world.found()
    await world.clock.advance(30_000)
    expect(world.runs.map(({ callId, attempt }) => [callId, attempt])).toEqual([
      ['call_1', 1],
      ['call_1', 2],
      ['call_1', 3],
    ])
    expect(world.service.answers).toEqual([{ callId: 'call_1', answer: { error: ERROR }, key: 'call_1' }])
  })

  it('permanently is not retried', async () => {
    const world = toolWorld()
    world.run = async () => ({ kind: 'rejected', error: 'the tool answered 422' })
    await world.found()
    await world.clock.advance(30_000)
    expect([world.runs.length, world.service.answers.map(({ answer }) => answer)]).toEqual([
      1,
      [{ error: ERROR }],
    ])
  })

  it('and may not run twice is tried again only when it certainly did not run', async () => {
    const world = toolWorld({ spec: { afterCrash: 'fail' } })
    let first = true
    world.run = async () => {
      const ran = first ? ('no' as const) : ('unknown' as const)
      first = false
      return { kind: 'failed', error: 'no', ran }
    }
    await world.found()
    await world.clock.advance(30_000)
    expect(world.runs).toHaveLength(2)
    expect(world.service.answers.map(({ answer }) => answer)).toEqual([{ error: ERROR }])
  })

  it('waits as long as it asked for', async () => {
    const world = toolWorld()
    world.run = async ({ attempt }) =>
      attempt === 1 ? { kind: 'failed', error: 'busy', retryAfter: 20_000 } : output('42')
    await world.found()
    await world.clock.advance(19_999)
    expect(world.runs).toHaveLength(1)
    await world.clock.advance(10)
    expect(world.runs).toHaveLength(2)
  })

  it('hangs: it is cut at its timeout', async () => {
    const world = toolWorld({ spec: { retry: { attempts: 1, base: 1, max: 1 } } })
    world.run = never
    await world.found()
    await world.clock.advance(29_999)
    expect(world.service.answers).toEqual([])
    await world.clock.advance(1)
    expect(world.service.answers.map(({ answer }) => answer)).toEqual([{ error: ERROR }])
  })

  // [fault tool-6]
  it('runs past the deadline: it is stopped before it, and the fixed error still gets there', async () => {
    const world = toolWorld()
    let stopped = false
    world.run = (_, signal) => {
      signal.addEventListener('abort', () => (stopped = true))
      return never()
    }
    await world.found('call_1', { expiresAt: world.clock.now() + 10_000 })
    await world.clock.advance(9500)
    expect(stopped).toBe(true)
    expect(world.service.answers.map(({ answer }) => answer)).toEqual([{ error: ERROR }])
  })

  it('with a deadline of one second, the shortest, has most of it', async () => {
    const world = toolWorld()
    let aborted: number | null = null
    world.run = (_, signal) => {
      const begun = world.clock.steady()
      signal.addEventListener('abort', () => (aborted = world.clock.steady() - begun))
      return never()
    }
    await world.found('call_1', { expiresAt: world.clock.now() + 1000 })
    expect(world.runs).toHaveLength(1)
    await world.clock.advance(2000)
    expect(aborted).toBe(900)
  })

  it('is not even started after the deadline, by the clock of the service', async () => {
    const world = toolWorld()
    world.service.offset = 3_600_000
    await world.found('call_1', { expiresAt: world.clock.now() + 600_000 })
    expect([world.runs.length, world.service.answers.map(({ answer }) => answer)]).toEqual([
      0,
      [{ error: ERROR }],
    ])
  })
})

describe('a tool that answers later', () => {
  it('is not given up by our clock while the clock of the service is unknown', async () => {
    const world = toolWorld()
    world.run = async () => ({ kind: 'deferred' })
    await world.found('call_1', { expiresAt: world.clock.now() + 60_000 })
    world.service.open = Infinity
    await world.crash()
    await world.clock.advance(3_600_000)
    expect(world.service.answers).toEqual([])
    world.service.open = 1000
    await world.clock.advance(600_000)
    expect(world.service.answers.map(({ answer }) => answer)).toEqual([{ error: ERROR }])
  })

  it('leaves the call waiting until the app answers', async () => {
    const world = toolWorld()
    world.run = async () => ({ kind: 'deferred' })
    await world.found()
    await world.clock.advance(60_000)
    expect(world.service.answers).toEqual([])
    expect(await world.host.answer('call_1', { output: 'later' })).toBe('accepted')
    await world.clock.advance(5000)
    expect(world.service.answers.map(({ answer }) => answer)).toEqual([{ output: 'later' }])
    expect(await world.host.answer('call_1', { output: 'again' })).toBe('conflict')
    expect(await world.host.answer('call_9', { output: 'none' })).toBe('not_found')
  })

  it('while the session is read to see whether it still waits: the answer is posted at once', async () => {
    const world = toolWorld()
    world.run = async () => ({ kind: 'deferred' })
    await world.found()
    let answered = false
    world.beforeStep = async ({ event }) => {
      if (answered || event.type === 'app_answered') return
      answered = true
      expect(await world.host.answer('call_1', { output: 'later' })).toBe('accepted')
    }
    while (!answered) await world.clock.advance(10_000)
    await world.clock.advance(1000)
    expect(world.service.answers.map(({ answer }) => answer)).toEqual([{ output: 'later' }])
  })

  it('may say that it failed: the fixed error is posted', async () => {
    const world = toolWorld()
    world.run = async () => ({ kind: 'deferred' })
    await world.found()
    expect(await world.host.answer('call_1', { error: true })).toBe('accepted')
    await world.clock.advance(5000)
    expect(world.service.answers.map(({ answer }) => answer)).toEqual([{ error: ERROR }])
  })

  it('may not answer with more than the service takes', async () => {
    const world = toolWorld()
    world.run = async () => ({ kind: 'deferred' })
    await world.found()
    expect(await world.host.answer('call_1', { output: 'x'.repeat(1024 * 1024) })).toBe('too_long')
    expect(await world.call()).toMatchObject({ state: 'running', deferred: true })
  })

  it('and never answers: the fixed error before the deadline, also after a crash', async () => {
    const world = toolWorld()
    world.run = async () => ({ kind: 'deferred' })
    await world.found('call_1', { expiresAt: world.clock.now() + 60_000 })
    await world.crash()
    await world.clock.advance(57_000)
    expect([world.runs.length, world.service.answers.length]).toEqual([1, 0])
    await world.clock.advance(2500)
    expect(world.service.answers.map(({ answer }) => answer)).toEqual([{ error: ERROR }])
  })

  it('is waited for until the deadline, also when the clock that we wait by was ahead over a restart', async () => {
    const world = toolWorld()
    world.run = async () => ({ kind: 'deferred' })
    await world.found('call_1', { expiresAt: world.clock.now() + 60_000 })
    world.clock.jump(-3_600_000)
    await world.clock.leap(3_600_000)
    await world.crash()
    await world.clock.advance(50_000)
    expect(world.service.answers).toEqual([])
    await world.clock.advance(10_000)
    expect(world.service.answers.map(({ answer }) => answer)).toEqual([{ error: ERROR }])
  })
})

describe('an answer', () => {
  it.each([
    ['as soon as a read has found it', async (world: World) => await world.takeOn(world.callAs('call_1'))],
    ['from the store', async (world: World) => await world.found()],
  ])('to a call that was run %s is in the trace of the run', async (_name, begin) => {
    const world = toolWorld()
    const ids = ['a', 'b'].map((digit) => digit.repeat(32))
    const [first, later] = ids.map((id) => ({ traceparent: `00-${id}-${'c'.repeat(16)}-01` }))
    world.service.waiting.add('call_1')
    world.service.metadata = first ?? {}
    // The session gets another traceparent meanwhile.
    world.run = async () => {
      world.service.metadata = later ?? {}
      return output('42')
    }
    let refusals = 1
    const { reply } = world.service
    world.service.reply = (callId) => {
      if (refusals-- > 0) throw refusal(503, 'unavailable')
      return reply(callId)
    }
    await begin(world)
    await world.clock.advance(10_000)
    expect(world.runs.map(({ session }) => session.metadata)).toEqual([first])
    expect(world.service.traceparents.map((text) => text?.slice(3, 35))).toEqual([ids[0], ids[0]])
  })

  it.each([
    ['unsent', refusal(0, 'stopped')],
    ['without a reply', refusal(0, 'stopped').afterSilence()],
  ])(
    'that a stop leaves %s is posted by the next process, with the error of its tool',
    async (_how, fault) => {
      const world = toolWorld({ spec: { retry: { attempts: 1, base: 1, max: 1 } } })
      world.run = async () => ({ kind: 'failed', error: 'the order is unknown' })
      const { reply } = world.service
      const stops: Promise<void>[] = []
      world.service.reply = () => {
        stops.push(world.host.stop(1000))
        throw fault
      }
      await world.found()
      await Promise.all(stops)
      expect(world.log.lines.filter(({ message }) => !message.includes('the last run failed'))).toEqual([])
      world.service.reply = reply
      await world.crash()
      await world.clock.advance(10_000)
      expect(world.trace.filter((entry) => entry === 'post' || entry === 'read')).toEqual([
        'post',
        'read',
        'post',
        'read',
      ])
      expect(await world.call()).toMatchObject({ state: 'answered', error: 'the order is unknown' })
    },
  )

  it('that was not delivered is sent as a message by the next process, if a stop left it unsent', async () => {
    const world = toolWorld()
    world.service.reply = (callId) => {
      world.service.waiting.delete(callId)
      return 'not_delivered'
    }
    const stops: Promise<void>[] = []
    world.service.message = () => {
      stops.push(world.host.stop(1000))
      throw refusal(0, 'stopped')
    }
    await world.found()
    await Promise.all(stops)
    expect(world.log.lines).toEqual([])
    world.service.message = () => undefined
    await world.crash()
    await world.clock.advance(10_000)
    expect(world.service.messages).toHaveLength(1)
    expect(await world.call()).toMatchObject({ state: 'not_delivered', error: null })
  })

  it('that is refused after one without a reply, and whose action is no longer listed, has an unknown outcome', async () => {
    const world = toolWorld()
    world.service.reply = (callId) => {
      world.service.waiting.delete(callId)
      throw refusal(429, 'project_limit_exceeded').afterSilence()
    }
    await world.found()
    await world.clock.advance(10_000)
    expect(await world.call()).toMatchObject({ state: 'answered', outcome: 'unknown' })
    expect(await world.facts()).toEqual(['call.answered'])
    // The metric that an alert watches.
    expect(world.reports.map(({ outcome }) => outcome)).toEqual(['unknown'])
  })

  it('that is refused ends its call as soon as the action is gone, though a read of its own hangs', async () => {
    const world = toolWorld()
    world.service.reply = () => {
      world.service.hangs = true
      throw refusal(422, 'invalid_output')
    }
    await world.found()
    expect(world.trace.at(-1)).toBe('read')
    world.host.actionsGone(['call_1'], 'resolved')
    await world.clock.settle()
    expect(await world.call()).toMatchObject({ state: 'failed', outcome: 'expired' })
    expect(await world.facts()).toEqual(['call.failed'])
  })

  it('without a reply is posted again, the same, after the service said that it still waits', async () => {
    const world = toolWorld()
    let replies = 0
    const { reply } = world.service
    world.service.reply = (callId) => {
      if (replies++ < 3) throw refusal(502, 'bad_gateway')
      return reply(callId)
    }
    await world.found()
    await world.clock.advance(60_000)
    expect(world.service.answers).toEqual(
      Array.from({ length: 4 }, () => ({ callId: 'call_1', answer: { output: '42' }, key: 'call_1' })),
    )
    expect(world.runs).toHaveLength(1)
    const postings = world.trace.filter((entry) => entry === 'post' || entry === 'read')
    expect(postings.slice(0, 7)).toEqual(['post', 'read', 'post', 'read', 'post', 'read', 'post'])
  })

  // [fault tool-3]
  it('whose reply was lost although it was taken is not posted twice', async () => {
    const world = toolWorld()
    world.service.reply = (callId) => {
      world.service.waiting.delete(callId)
      throw refusal(0, 'network')
    }
    await world.found()
    await world.clock.advance(60_000)
    expect(world.service.answers).toHaveLength(1)
    expect(await world.call()).toMatchObject({ state: 'answered', outcome: 'unknown' })
  })

  // [fault tool-5]
  it('with an unknown outcome word is accepted when the action is no longer listed, and is not posted again', async () => {
    const world = toolWorld()
    world.service.reply = () => 'pondered'
    await world.found()
    await world.clock.advance(20_000)
    world.service.waiting.clear()
    await world.clock.advance(60_000)
    expect(world.service.answers).toHaveLength(1)
    expect(await world.call()).toMatchObject({ state: 'answered', outcome: 'pondered' })
  })

  it('that was accepted and whose call stays listed is checked less and less often, then abandoned', async () => {
    const world = toolWorld()
    world.service.reply = () => 'delivered'
    await world.found()
    await world.clock.advance(3_600_000)
    expect(world.service.answers).toHaveLength(1)
    expect(world.trace.filter((what) => what === 'read')).toHaveLength(9)
    expect(await world.call()).toMatchObject({
      state: 'failed',
      outcome: 'unresolved',
      error: 'the service accepted the answer ("delivered") and still lists the call',
    })
    expect(await world.facts()).toEqual(['call.failed'])
    expect(world.reports).toMatchObject([{ tool: 'lookup', outcome: 'unresolved' }])
    expect(
      world.log.lines.map(({ message }) => message).filter((line) => /still lists/.test(line)),
    ).toHaveLength(2)
  })

  it('that was accepted is abandoned after the same time with and without crashes', async () => {
    const world = toolWorld()
    world.service.reply = () => 'delivered'
    await world.found()
    for (let minute = 0; minute < 10; minute++) {
      await world.clock.advance(60_000)
      await world.crash()
    }
    expect(world.service.answers).toHaveLength(1)
    expect(await world.call()).toMatchObject({ state: 'failed', outcome: 'unresolved' })
  })

  it('that the service refuses is followed once by the fixed error, then by call.failed', async () => {
    const world = toolWorld()
    const { reply } = world.service
    world.service.reply = (callId) => {
      if (world.service.answers.length === 1) throw refusal(422, 'output_invalid')
      return reply(callId)
    }
    await world.found()
    await world.clock.advance(20_000)
    expect(world.service.answers).toEqual([
      { callId: 'call_1', answer: { output: '42' }, key: 'call_1' },
      { callId: 'call_1', answer: { error: ERROR }, key: 'call_1.error' },
    ])
    expect(await world.call()).toMatchObject({ state: 'failed', outcome: 'refused' })
    expect(await world.facts()).toEqual(['call.failed'])
  })

  it('whose fixed error is refused too ends the call', async () => {
    const world = toolWorld()
    world.service.reply = () => {
      throw refusal(422, 'output_invalid')
    }
    await world.found()
    await world.clock.advance(20_000)
    expect(world.service.answers).toHaveLength(2)
    expect(await world.call()).toMatchObject({ state: 'failed', outcome: 'refused' })
  })

  it('waits as long as the service asks, and reads nothing before the next try', async () => {
    const world = toolWorld()
    const { reply } = world.service
    world.service.reply = (callId) => {
      if (world.service.answers.length === 1) throw refusal(429, 'rate_limit_exceeded', 40_000)
      return reply(callId)
    }
    await world.found()
    await world.clock.advance(39_999)
    expect(world.service.answers).toHaveLength(1)
    await world.clock.advance(10)
    expect(world.service.answers).toHaveLength(2)
    expect(world.trace.slice(0, world.trace.lastIndexOf('post'))).not.toContain('read')
  })

  it('that was not delivered is sent as a follow-up message before its fact is reported', async () => {
    const world = toolWorld()
    world.service.reply = () => 'not_delivered'
    await world.found()
    await world.clock.advance(5000)
    expect(world.service.answers).toHaveLength(1)
    expect(world.service.messages).toMatchObject([{ key: 'call_1.resend' }])
    expect(world.service.messages[0]?.text).toContain('42')
    expect(world.trace.slice(-2)).toEqual(['message', 'step not_delivered'])
    expect(await world.facts()).toEqual(['call.not_delivered'])
  })

  it.each([
    ['its answer is posted', null, 'step result_fixed', ['post', 'step post_accepted']],
    [
      'its result is sent as a new message',
      () => 'not_delivered',
      'step post_undelivered',
      ['message', 'step not_delivered'],
    ],
  ] as const)(
    'whose process was frozen before %s is continued by its new owner alone',
    async (_, reply, stored, later) => {
      const world = toolWorld()
      if (reply !== null) world.service.reply = reply
      world.beforeStep = async ({ event }) => {
        if (`step ${event.type}` === stored) world.owns = false
      }
      await world.found()
      await world.clock.advance(60_000)
      expect(world.trace.at(-1)).toBe(stored)

      world.owns = true
      await world.crash()
      await world.clock.advance(5000)
      expect(world.trace.filter((entry) => entry === later[0])).toHaveLength(1)
      expect(world.trace).toContain(later[1])
    },
  )

  // [fault tool-4]
  it('that was not delivered is only reported when the policy says so', async () => {
    const world = toolWorld({ spec: { onNotDelivered: 'report' } })
    world.service.reply = () => 'not_delivered'
    await world.found()
    await world.clock.advance(5000)
    expect([world.service.messages, await world.facts()]).toEqual([[], ['call.not_delivered']])
  })

  // Seed 4521. No other read reported that the session was deleted.
  it('causes a read of its session if the session is deleted at the follow-up message', async () => {
    const world = toolWorld()
    world.service.reply = () => 'not_delivered'
    world.service.message = () => {
      throw refusal(404, 'not_found')
    }
    await world.found()
    await world.clock.advance(5000)
    expect(world.trace.slice(-3)).toEqual(['step post_undelivered', 'message', 'step not_delivered'])
    expect(world.hints).toHaveLength(2)
    expect(world.hints.at(-1)).toMatchObject({ sessionId: 'ses_1', scope: 'session' })
  })

  it('sends a follow-up message again under the same key when it had no reply', async () => {
    const world = toolWorld()
    world.service.reply = () => 'not_delivered'
    let tries = 0
    world.service.message = () => {
      if (tries++ < 2) throw refusal(503, 'unavailable')
    }
    await world.found()
    await world.clock.advance(60_000)
    expect(tries).toBe(3)
    expect(world.service.messages).toMatchObject([{ key: 'call_1.resend' }])
    expect(await world.facts()).toEqual(['call.not_delivered'])
  })

  describe('that was not delivered, of a service without an idempotency header', () => {
    const lostWorld = () => {
      const world = toolWorld()
      const { service } = world
      service.idempotent = false
      service.reply = (callId) => {
        service.waiting.delete(callId)
        return 'not_delivered'
      }
      return world
    }
    const messageOf = (text: string, id = 'item_9') => ({
      id,
      type: 'message',
      role: 'user',
      content: text,
      created_at: Date.now(),
    })

    it('is sent once when its reply is lost and it arrived', async () => {
      const world = lostWorld()
      const texts: string[] = []
      world.service.message = (text) => {
        texts.push(text)
        world.service.items.unshift(messageOf(text))
        throw refusal(0, 'no_reply')
      }
      await world.found()
      await world.clock.advance(3000)
      expect(texts).toHaveLength(1)
      expect(await world.call()).toMatchObject({ state: 'not_delivered', error: null })
      expect(await world.facts()).toEqual(['call.not_delivered'])
    })

    it('is found also when it waits behind a turn for an hour, and behind other messages', async () => {
      const world = lostWorld()
      let sent = 0
      world.service.status = 'working'
      world.service.message = (text) => {
        sent++
        world.clock.after(3_600_000, () => {
          world.service.items = [
            ...Array.from({ length: 150 }, (_, index) => messageOf('other', `item_${index + 10}`)),
            messageOf(text),
          ]
        })
        throw refusal(500, 'internal_error')
      }
      await world.found()
      await world.clock.advance(3_500_000)
      expect(await world.facts()).toEqual([])
      await world.clock.advance(500_000)
      expect([sent, await world.facts()]).toEqual([1, ['call.not_delivered']])
    })

    it('is sent once more when it is certain that it did not arrive, and not a third time', async () => {
      const world = lostWorld()
      const times: number[] = []
      world.service.message = () => {
        times.push(world.clock.steady())
        throw refusal(0, 'no_reply')
      }
      await world.found()
      await world.clock.advance(3_600_000)
      expect(times).toHaveLength(2)
      expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(60_000)
      expect(await world.call()).toMatchObject({
        state: 'not_delivered',
        error: 'the reply to the new message was lost twice: it is not sent a third time',
      })
    })

    it.each([
      { what: 'the session is never idle', status: 'working', items: [] },
      {
        what: 'a message has no text',
        status: 'idle',
        items: [{ id: 'item_1', type: 'message', role: 'user' }],
      },
    ])('is not sent again if its arrival is unknown: $what', async ({ status, items }) => {
      const world = lostWorld()
      world.service.status = status
      world.service.items = items
      let sent = 0
      world.service.message = () => {
        sent++
        throw refusal(0, 'no_reply')
      }
      await world.found()
      await world.clock.advance(3 * 3_600_000)
      expect(sent).toBe(1)
      expect(await world.call()).toMatchObject({
        state: 'not_delivered',
        error: 'the reply to the new message was lost, and the transcript does not show whether it arrived',
      })
    })

    it('is looked for after a crash between the message and its reply', async () => {
      const world = lostWorld()
      world.service.message = (text) => {
        world.service.items.unshift(messageOf(text))
        return never()
      }
      await world.found()
      await world.crash()
      await world.clock.advance(5000)
      expect(world.trace.filter((what) => what === 'message')).toHaveLength(1)
      expect(await world.facts()).toEqual(['call.not_delivered'])
    })

    it('is sent again at once when the service was unreachable and a reading finds the action gone', async () => {
      const world = lostWorld()
      let tries = 0
      world.service.message = () => {
        if (tries++ === 0) throw refusal(0, 'unreachable')
      }
      await world.found()
      world.host.actionsGone(['call_1'], 'resolved')
      await world.clock.advance(1000)
      expect(world.service.messages).toHaveLength(1)
      expect(await world.facts()).toEqual(['call.not_delivered'])
    })

    it('is not looked for when our own budget refused it during a 503 that asks to wait', async () => {
      const world = lostWorld()
      let tries = 0
      world.service.message = () => {
        const details = { status: 503, code: 'http_503', message: 'held', retryAfter: 1000 }
        if (tries++ === 0) throw new ServiceError({ ...details, unsent: true })
      }
      await world.found()
      expect(await world.call()).toMatchObject({ unsure: false, error: 'held' })
      await world.clock.advance(2000)
      expect(world.service.messages).toHaveLength(1)
      expect(world.trace).not.toContain('items')
    })

    it('is tried several times after many looks when a refusal proves that it was not taken', async () => {
      const world = lostWorld()
      let tries = 0
      world.service.status = 'working'
      world.service.message = () => {
        tries++
        if (tries === 1) throw refusal(0, 'no_reply')
        if (tries <= 10) throw refusal(429, 'http_429')
      }
      await world.found()
      await world.clock.advance(2_000_000)
      expect((await world.call()).posts).toBeGreaterThanOrEqual(12)
      world.service.status = 'idle'
      await world.clock.advance(1_200_000)
      expect(tries).toBe(11)
      expect(await world.call()).toMatchObject({ state: 'not_delivered' })
      expect(world.service.messages).toHaveLength(1)
    })

    it('is not tried without end when it is refused after its looks', async () => {
      const world = lostWorld()
      let tries = 0
      world.service.message = () => {
        throw tries++ === 0 ? refusal(0, 'no_reply') : refusal(429, 'http_429')
      }
      await world.found()
      await world.clock.advance(2 * 3_600_000)
      expect(await world.call()).toMatchObject({ state: 'not_delivered', error: 'http_429!' })
      expect(tries).toBeGreaterThan(10)
    })

    it('waits while the queue is full, however long', async () => {
      const world = lostWorld()
      let full = true
      world.service.status = 'working'
      world.service.message = () => {
        if (full) throw refusal(409, 'queue_full')
      }
      await world.found()
      world.host.actionsGone(['call_1'], 'resolved')
      await world.clock.advance(7_200_000)
      expect(await world.facts()).toEqual([])
      expect(await world.call()).toMatchObject({ unsure: false, error: 'queue_full!' })
      full = false
      await world.clock.advance(15_000)
      expect(world.service.messages).toHaveLength(1)
      expect(await world.facts()).toEqual(['call.not_delivered'])
    })
  })

  it('that was not delivered keeps its pending follow-up message when a read finds the action gone', async () => {
    const world = toolWorld()
    world.service.reply = (callId) => {
      world.service.waiting.delete(callId)
      return 'not_delivered'
    }
    let tries = 0
    world.service.message = () => {
      if (tries++ === 0) throw refusal(503, 'unavailable')
    }
    await world.found()
    expect(tries).toBe(1)
    world.host.actionsGone(['call_1'], 'resolved')
    await world.clock.advance(60_000)
    expect(world.service.messages).toMatchObject([{ key: 'call_1.resend' }])
    expect(await world.facts()).toEqual(['call.not_delivered'])
  })
})

describe('stopping', () => {
  it('lets runs end within the grace, and abandons those that wait for a service that does not answer', async () => {
    const world = toolWorld({ spec: { concurrency: 1 } })
    world.service.reply = () => never()
    await world.found()
    expect(world.service.answers).toHaveLength(1)
    let stopped = false
    void world.host.stop(10_000).then(() => (stopped = true))
    await world.clock.advance(9999)
    expect(stopped).toBe(false)
    await world.clock.advance(1000)
    expect(stopped).toBe(true)
    expect(await world.call()).toMatchObject({ state: 'finished' })
  })

  it('does not begin a run after the grace of the stop, and does not mark it as uncertain', async () => {
    const world = toolWorld()
    const { promise: written, resolve: goOn } = Promise.withResolvers<void>()
    world.beforeStep = () => written
    await world.found()
    void world.host.stop(1000)
    await world.clock.advance(1000)
    goOn()
    await world.clock.settle()
    expect(world.runs).toEqual([])
    expect(await world.call()).toMatchObject({ state: 'received', attempts: 0, uncertain: false })
  })

  // Found by the simulation: the stop did not wait for the run, nor end it.
  it('ends a run of a call that a reading took for new while it was taken from the ledger', async () => {
    const world = toolWorld()
    let aborted = false
    world.run = async () => ({ kind: 'failed', error: 'busy' })
    const { promise: written, resolve: goOn } = Promise.withResolvers<void>()
    world.beforeAdd = () => written
    void world.takeOn(world.callAs('call_1'))
    await world.clock.settle()
    await world.found()
    world.run = (_, signal) => {
      signal.addEventListener('abort', () => (aborted = true))
      return never()
    }
    await world.clock.advance(1000)
    goOn()
    await world.clock.settle()
    expect(world.runs).toHaveLength(2)
    let stopped = false
    void world.host.stop(1000).then(() => (stopped = true))
    await world.clock.advance(999)
    expect([stopped, aborted]).toEqual([false, false])
    await world.clock.advance(1)
    expect([stopped, aborted]).toEqual([true, true])
  })

  it('accepts no more calls, and writes none as running', async () => {
    const world = toolWorld()
    void world.host.stop(1000)
    await world.takeOn(world.callAs('call_9'))
    await world.clock.advance(5000)
    expect(await world.call('call_9')).toMatchObject({ state: 'received', attempts: 0 })
    expect(world.runs).toEqual([])
  })
})

describe('a call that a reading found just now', () => {
  it('and whose app answers in the commit that stores its next run is not run again', async () => {
    const world = toolWorld()
    world.run = () => never()
    await world.found()
    const { log } = world.store
    const { commit } = log
    log.commit = (batch) => {
      const committed = commit(batch)
      if (batch.calls?.[0]?.event.type !== 'run_begun_again') return committed
      const result = { kind: 'output', text: 'late' } as const
      void commit({ calls: [{ callId: 'call_1', event: { type: 'app_answered', result, at: 0 } }] })
      return committed
    }
    await world.crash()
    await world.clock.advance(5000)
    expect(world.runs).toHaveLength(1)
    expect(world.service.answers).toEqual([{ callId: 'call_1', answer: { output: 'late' }, key: 'call_1' }])
  })

  it('is written as running in one step, and runs at once', async () => {
    const world = toolWorld()
    await world.takeOn(world.callAs('call_9'))
    await world.clock.settle()
    expect(world.runs).toMatchObject([{ callId: 'call_9', attempt: 1, uncertain: false }])
    expect(world.trace.slice(0, 3)).toEqual(['add', 'run', 'step result_fixed'])
  })

  it('has a head start until its answer is posted', async () => {
    const world = toolWorld()
    const { promise, resolve } = Promise.withResolvers<ToolResult>()
    world.run = () => promise
    await world.takeOn(world.callAs('call_9'))
    const begunAt = world.clock.steady()
    let isOver = false
    const headStart = world.host.headStart(['call_9']).finally(() => (isOver = true))
    await world.clock.settle()
    expect(isOver).toBe(false)
    resolve(output('42'))
    await world.clock.settle()
    expect(await headStart).toBe(true)
    expect(world.clock.steady()).toBe(begunAt)
    expect(world.trace).toEqual(expect.arrayContaining(['step result_fixed', 'post']))
  })

  it('has a head start while it is being stored, which ends if it cannot be stored', async () => {
    const world = toolWorld()
    const { promise, reject } = Promise.withResolvers<void>()
    world.beforeAdd = () => promise
    const taken = world.takeOn(world.callAs('call_9'))
    await world.clock.settle()
    let isOver = false
    const headStart = world.host.headStart(['call_9']).then(() => (isOver = true))
    await world.clock.advance(50)
    expect(isOver).toBe(false)
    reject(new Error('the disk is full'))
    await expect(taken).rejects.toThrow('the disk is full')
    await headStart
    expect(world.runs).toEqual([])
  })

  it('has a head start of 3 ms if its tool takes longer, and none in a later read', async () => {
    const world = toolWorld()
    world.run = () => never()
    await world.takeOn(world.callAs('call_9'))
    let isPosted: boolean | null = null
    void world.host.headStart(['call_9']).then((posted) => (isPosted = posted))
    await world.clock.advance(2)
    expect(isPosted).toBeNull()
    await world.clock.advance(1)
    expect(isPosted).toBe(false)
    await world.host.headStart(['call_9'])
    expect(world.runs).toHaveLength(1)
  })

  it('whose tool defers it has nothing posted at the end of its head start', async () => {
    const world = toolWorld()
    world.run = async () => ({ kind: 'deferred' })
    await world.takeOn(world.callAs('call_9'))
    const headStart = world.host.headStart(['call_9'])
    await world.clock.settle()
    expect(await headStart).toBe(false)
  })

  it('is not enough for a session with another action, which is still open at the end of the head start', async () => {
    const world = toolWorld()
    await world.takeOn(world.callAs('call_9'))
    const headStart = world.host.headStart(['call_9', 'approval'])
    await world.clock.settle()
    expect(await headStart).toBe(false)
    expect(world.service.answers).toMatchObject([{ callId: 'call_9' }])
  })

  it('has no head start while it waits for its tool', async () => {
    const world = toolWorld({ spec: { concurrency: 1 } })
    world.run = () => never()
    await world.takeOn(world.callAs('call_8'), world.callAs('call_9'))
    await world.host.headStart(['call_9'])
    expect(world.runs).toMatchObject([{ callId: 'call_8' }])
  })

  it('waits as received if its tool has no free slot', async () => {
    const world = toolWorld({ spec: { concurrency: 1 } })
    world.run = () => never()
    await world.takeOn(world.callAs('call_8'), world.callAs('call_9'))
    await world.clock.settle()
    expect([await world.call('call_8'), await world.call('call_9')]).toMatchObject([
      { state: 'running' },
      { state: 'received' },
    ])
  })

  it('that is already stored is run once', async () => {
    const world = toolWorld()
    await world.takeOn(world.callAs('call_9'))
    await world.takeOn(world.callAs('call_9'))
    await world.clock.advance(5000)
    expect(world.runs).toHaveLength(1)
  })

  it('that a crash cut short is read again before it runs again, whatever the wall clock says of its age', async () => {
    const world = toolWorld()
    world.run = () => never()
    await world.found('call_1', { receivedAt: world.clock.now() + 1000 })
    world.trace.length = 0
    await world.crash()
    expect(world.trace.filter((entry) => entry === 'read' || entry === 'run')).toEqual(['read', 'run'])
  })

  it('crashes before it runs: it counts as interrupted, and is marked as uncertain', async () => {
    const world = toolWorld()
    world.run = () => never()
    await world.takeOn(world.callAs('call_9'))
    await world.clock.settle()
    world.run = async () => output('again')
    world.service.waiting.add('call_9')
    await world.crash()
    await world.clock.advance(5000)
    expect(world.runs.at(-1)).toMatchObject({ callId: 'call_9', attempt: 2, uncertain: true })
  })
})
