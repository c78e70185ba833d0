import { execFile } from 'node:child_process'
import process, { getActiveResourcesInfo } from 'node:process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { Clock } from '../../src/emulator/clock.ts'
import { startEmulator } from '../../src/emulator/index.ts'
import { EventLog } from '../../src/emulator/log.ts'
import { listen } from './listener.ts'
import { receive } from './receiver.ts'
import { freePort } from '../support/listen.ts'
import { Bench, open, until } from './support.ts'
import { profileA } from '../../src/emulator/profile/a.ts'

describe('the start and the end of the emulator', () => {
  it('starts several at once, each on a port of its own, sharing nothing', async () => {
    const benches = await Promise.all(
      (['a', 'b'] as const).flatMap((profile) =>
        [1, 2, 3].map((n) => open(profile, { token: `svc_pat_${profile}${n}`, startAt: n * 1_000_000 })),
      ),
    )
    expect(new Set(benches.map(({ emulator }) => emulator.baseUrl)).size).toBe(6)
    const [first, ...others] = benches
    if (first === undefined) throw new Error('none was started')
    const id = await first.session()
    await first.send(id, 'say hello')
    await first.settle(id)
    first.emulator.faults.set({ server_errors: 1 })
    await first.emulator.advance(3_600_000)
    for (const [index, other] of others.entries()) {
      expect(other.emulator.ledger()).toMatchObject({ sessions: [], events: [], turns: [] })
      expect(other.emulator.now()).toBeLessThan(((index + 1) % 3) * 1_000_000 + 1_060_000)
      expect(other.emulator.faults.get()).toEqual({})
      expect((await other.call('GET', `/v1/sessions/${id}`)).status).toBe(404)
      other.token = first.emulator.token
      expect((await other.call('GET', '/v1/health')).status).toBe(401)
    }
  })

  it('listens at the given address, and a second close does nothing', async () => {
    const port = await freePort()
    const emulator = await startEmulator({ listen: { host: '127.0.0.1', port } })
    expect(emulator.baseUrl).toBe(`http://127.0.0.1:${port}`)
    await emulator.close()
    await emulator.close()
  })

  it('keeps no process alive once it is closed', async () => {
    const program = new URL('./closing.ts', import.meta.url).pathname
    const { stdout } = await promisify(execFile)(process.execPath, [program], { timeout: 60_000 })
    expect(stdout).toBe('closed\n')
  })

  it('closes with streams open, turns running, calls waiting and webhooks pending, and leaves nothing behind', async () => {
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

  it('carries a burst of twenty thousand events through one stream, all of them and in order', async () => {
    const bench = await open('a')
    const id = await bench.session()
    const stream = await listen(bench)
    await bench.send(id, 'burst 20000 300')
    await until(() => (stream.frames.at(-1)?.event === 'turn.ended' ? true : undefined))
    const seqs = stream.frames.filter(({ id: seq }) => seq !== undefined).map(({ id: seq }) => Number(seq))
    expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, index) => index + 1))
    expect(stream.frames.filter(({ event }) => event === 'agent.message')).toHaveLength(20_000)
  })

  it('removes the oldest events over its limit, and reports how many', async () => {
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
  it('runs each timer at its time, in order, also timers that a timer starts', async () => {
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

  it('runs timers by itself without advance', async () => {
    const clock = new Clock()
    await new Promise<void>((resolve) => clock.after(20, resolve))
    const controller = new AbortController()
    const waiting = clock.wait(60_000, controller.signal)
    controller.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    clock.close()
  })
})

it('the log finds events by seq, also after it removed some', () => {
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
