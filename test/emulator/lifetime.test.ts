import { getActiveResourcesInfo } from 'node:process'
import { describe, expect, it } from 'vitest'
import { Clock } from '../../src/emulator/clock.ts'
import { startEmulator } from '../../src/emulator/index.ts'
import { EventLog } from '../../src/emulator/log.ts'
import { listen } from './listener.ts'
import { receive } from './receiver.ts'
import { Bench, open, until } from './support.ts'
import { profileA } from '../../src/emulator/profile/a.ts'

describe('the emulator as a thing that starts and ends', () => {
  it('starts in under 200 ms and shares nothing with another', async () => {
    const first = await open('a')
    const began = performance.now()
    const second = await open('b', { token: 'svc_pat_other' })
    expect(performance.now() - began).toBeLessThan(200)
    await first.session()
    expect(second.emulator.ledger().sessions).toEqual([])
    second.token = first.emulator.token
    expect((await second.call('GET', '/v1/health')).status).toBe(401)
  })

  it('closes with streams open, turns running, calls waiting and webhooks owed, and leaves nothing behind', async () => {
    const receiver = await receive()
    const before = getActiveResourcesInfo().filter(
      (name) => name === 'TCPSocketWrap' || name === 'TCPServerWrap',
    ).length
    const emulator = await startEmulator({ allowHttpWebhooks: true })
    const bench = new Bench(emulator, profileA)
    receiver.answer = null
    await bench.call('POST', '/v1/webhooks', { url: receiver.url, events: [] })
    const streams = [await listen(bench), await listen(bench)]
    const id = await bench.session()
    await bench.send(id, 'hang')
    const other = await bench.session()
    await bench.send(other, 'call f {}')
    await bench.actions(other)
    await emulator.close()
    await until(() => (streams.every(({ closed }) => closed) ? true : undefined))
    await until(() => {
      const left = getActiveResourcesInfo().filter(
        (name) => name === 'TCPSocketWrap' || name === 'TCPServerWrap',
      ).length
      return left <= before ? true : undefined
    })
    await expect(bench.call('GET', '/v1/health')).rejects.toThrow('ECONNREFUSED')
  })

  it('says why it cannot listen', async () => {
    const first = await open('a')
    const port = Number(new URL(first.emulator.baseUrl).port)
    await expect(startEmulator({ listen: { port } })).rejects.toThrow('EADDRINUSE')
  })

  it('carries more than 10,000 events a second through one stream', async () => {
    const bench = await open('a')
    const id = await bench.session()
    const stream = await listen(bench)
    const began = performance.now()
    await bench.send(id, 'burst 20000 300')
    await until(() => (stream.frames.at(-1)?.event === 'turn.ended' ? true : undefined))
    expect(20_000 / ((performance.now() - began) / 1000)).toBeGreaterThan(10_000)
    expect(stream.frames.filter(({ event }) => event === 'agent.message')).toHaveLength(20_000)
  })

  it('forgets the oldest events past its bound, and says how many', async () => {
    const bench = await open('a', { limits: { events: 1000 } })
    const id = await bench.session()
    await bench.send(id, 'burst 3000 10')
    await bench.settle(id)
    const { events, forgotten, first_seq, last_seq } = bench.emulator.ledger()
    expect(events.length).toBeLessThanOrEqual(1100)
    expect([forgotten.events, last_seq]).toEqual([first_seq - 1, 3004])
    expect(events[0]?.seq).toBe(first_seq)
  })
})

describe('the clock', () => {
  it('runs what is due at its own moment, in order, also what that starts', async () => {
    const clock = new Clock(1_000_000)
    const seen: [string, number][] = []
    const note = (name: string) => seen.push([name, Math.round((clock.now() - 1_000_000) / 1000)])
    clock.after(3000, () => note('three'))
    clock.after(1000, () => {
      note('one')
      clock.after(1000, () => note('two'))
    })
    clock.after(2500, () => note('cancelled')).cancel()
    const every = clock.every(60_000, () => note('minute'))
    await clock.advance(125_000)
    every.cancel()
    await clock.advance(600_000)
    clock.close()
    expect(seen).toEqual([
      ['one', 1],
      ['two', 2],
      ['three', 3],
      ['minute', 60],
      ['minute', 120],
    ])
  })

  it('runs timers by itself when nobody hurries it', async () => {
    const clock = new Clock()
    await new Promise<void>((resolve) => clock.after(20, resolve))
    const controller = new AbortController()
    const waiting = clock.wait(60_000, controller.signal)
    controller.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    clock.close()
  })
})

it('the log answers by seq, also after it forgot', () => {
  const dropped: number[] = []
  const log = new EventLog(10, (first) => dropped.push(first))
  const event = { at: 0, type: 'x', sessionId: 's', turnId: null, payload: {} }
  for (let n = 0; n < 25; n++) log.append(event)
  expect(log.last).toBe(25)
  expect(log.at(log.first - 1)).toBeUndefined()
  expect(log.at(log.first)?.seq).toBe(log.first)
  expect(log.after(0).map(({ seq }) => seq)[0]).toBe(log.first)
  expect(log.after(24).map(({ seq }) => seq)).toEqual([25])
  expect(log.after(23, 1).map(({ seq }) => seq)).toEqual([24])
  expect(dropped.at(-1)).toBe(log.first)
})
