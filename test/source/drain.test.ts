import { PassThrough } from 'node:stream'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Frame } from '../../src/protocol/frame.ts'
import { MemoryWindow } from '../../src/sidecar/deliver/lane.ts'
import { readFrame } from '../../src/sidecar/intake/frame.ts'
import type { Pending } from '../../src/sidecar/source/batch.ts'
import { drainChunks, type DrainOptions } from './draining.ts'
import { VirtualClock } from '../support/clock.ts'
import { turnFact } from '../support/fact.ts'
import { frame, transient } from './stream-world.ts'

const encoder = new TextEncoder()
const MIB = 1024 * 1024

async function* chunksOf(bytes: Uint8Array, cuts: readonly number[]): AsyncGenerator<Uint8Array> {
  let start = 0
  for (const cut of [...cuts].sort((a, b) => a - b)) {
    yield bytes.subarray(start, cut)
    start = cut
  }
  yield bytes.subarray(start)
}

interface Drained {
  frames: Frame[]
  retries: number[]
}

async function drained(chunks: AsyncIterable<Uint8Array>): Promise<Drained> {
  const result: Drained = { frames: [], retries: [] }
  await drainChunks({
    chunks,
    connection: new AbortController(),
    accept: (one) => {
      result.frames.push(one)
      return null
    },
    commit: () => Promise.resolve(),
    onRetry: (ms) => result.retries.push(ms),
    clock: new VirtualClock(),
  })
  return result
}

const RECORDED =
  'retry: 8000\n\n' +
  frame(1) +
  ': ping\n\n' +
  transient('tränsient ☂') +
  frame(2, 'agent.message', { payload: { text: 'naïve 🐌 text' } }) +
  'id: 3\nevent: turn.ended\ndata: {"type":"turn.ended",\ndata: "session_id":"ses_1"}\n\n' +
  ': ping\n\n' +
  frame('9007199254740993')

/** A disk on which each write waits until the test lets it through. */
class HeldDisk {
  readonly #held: (() => void)[] = []
  /** Frames that are written. */
  committed = 0

  get waiting(): number {
    return this.#held.length
  }

  letOneThrough(): void {
    this.#held.shift()?.()
  }

  async commit(batch: readonly Pending[]): Promise<void> {
    await new Promise<void>((resolve) => void this.#held.push(resolve))
    this.committed += batch.length
  }
}

function drainTo(
  disk: HeldDisk,
  options: Pick<DrainOptions, 'chunks' | 'connection' | 'clock'>,
): Promise<void> {
  return drainChunks({
    ...options,
    accept: (one) => ({ meaning: readFrame(one, 0) as Pending['meaning'], raw: '', at: 0 }),
    commit: (batch) => disk.commit(batch),
  })
}

describe('draining a connection', () => {
  // [fault stream-9]
  it('gives the same frames wherever the network cuts it', async () => {
    const bytes = encoder.encode(RECORDED)
    const whole = await drained(chunksOf(bytes, []))
    expect(whole.frames.map(({ event, id }) => [event, id])).toEqual([
      ['agent.message', '1'],
      ['agent.text', undefined],
      ['agent.message', '2'],
      ['turn.ended', '3'],
      ['agent.message', '9007199254740993'],
    ])
    for (let cut = 1; cut < bytes.length; cut++) expect(await drained(chunksOf(bytes, [cut]))).toEqual(whole)
  })

  // [fault stream-9]
  it('gives the same frames for any number of cuts, line ends of either kind, and a byte order mark', async () => {
    const whole = await drained(chunksOf(encoder.encode(RECORDED), []))
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(RECORDED.length), { maxLength: 40 }),
        fc.constantFrom('\n', '\r\n', '\r'),
        fc.boolean(),
        async (cuts, lineEnd, mark) => {
          const bytes = encoder.encode((mark ? '\uFEFF' : '') + RECORDED.replaceAll('\n', lineEnd) + lineEnd)
          expect(await drained(chunksOf(bytes, cuts))).toEqual(whole)
        },
      ),
      { numRuns: 150 },
    )
  })

  it('omits a frame that is cut at the end: it arrives complete after the resume', async () => {
    const bytes = encoder.encode(frame(1) + frame(2).slice(0, -1))
    expect((await drained(chunksOf(bytes, []))).frames.map(({ id }) => id)).toEqual(['1'])
  })

  // [fault stream-10]
  it('abandons an endless line, and keeps at most 16 MiB of it', async () => {
    let sent = 0
    async function* endless(): AsyncGenerator<Uint8Array> {
      yield encoder.encode(`${frame(1)}data: `)
      const chunk = new Uint8Array(MIB).fill(120)
      for (; sent < 400; sent++) yield chunk
    }
    const frames: Frame[] = []
    const committed: Pending[] = []
    const failed = drainChunks({
      chunks: endless(),
      connection: new AbortController(),
      accept: (one) => {
        frames.push(one)
        return { meaning: readFrame(one, 0) as Pending['meaning'], raw: one.data, at: 0 }
      },
      commit: async (batch) => void committed.push(...batch),
      clock: new VirtualClock(),
    })
    await expect(failed).rejects.toThrow('a line is longer than 268435456 characters')
    expect(sent).toBeLessThanOrEqual(257)
    expect(committed).toHaveLength(1)
  })

  // [fault stream-10]
  it('abandons a frame with endless lines', async () => {
    async function* endless(): AsyncGenerator<Uint8Array> {
      const chunk = encoder.encode(`data: ${'x'.repeat(MIB)}\n`)
      for (let sent = 0; sent < 100; sent++) yield chunk
    }
    await expect(drained(endless())).rejects.toThrow('a frame is longer than 33554432 characters')
  })

  // [fault stream-10]
  it('cuts a line at 16 MiB, anywhere in the stream, and parses the lines around it', async () => {
    const long = 'x'.repeat(17 * MIB)
    for (const lineEnd of ['\n', '\r\n', '\r']) {
      const text = `${frame(1)}event: e\ndata: ${long}\nid: 2\n\ndata: ${long}\n\n${frame(3)}`
      const bytes = encoder.encode(text.replaceAll('\n', lineEnd))
      const { frames } = await drained(chunksOf(bytes, [5 * MIB, 18 * MIB, 18 * MIB + 7]))
      expect(frames.map(({ id, event }) => [id, event])).toEqual([
        ['1', 'agent.message'],
        ['2', 'e'],
        [undefined, undefined],
        ['3', 'agent.message'],
      ])
      expect(frames.slice(1, 3).map(({ data }) => data.length)).toEqual([16 * MIB - 6, 16 * MIB - 6])
    }
  })

  it('stops reading while the disk is slow: the queue is bounded', async () => {
    const clock = new VirtualClock()
    const body = 'x'.repeat(64 * 1024)
    const disk = new HeldDisk()
    let taken = 0
    async function* fast(): AsyncGenerator<Uint8Array> {
      for (let seq = 1; seq <= 400; seq++) {
        taken++
        yield encoder.encode(frame(seq, 'agent.message', { payload: { body } }))
      }
    }
    const done = drainTo(disk, { chunks: fast(), connection: new AbortController(), clock })
    await clock.settle()
    // 4 MiB wait at most, and one batch of 1 MiB is being written.
    expect(taken).toBeLessThan(90)
    let most = 0
    while (disk.committed < 400 && disk.waiting > 0) {
      disk.letOneThrough()
      await clock.settle()
      most = Math.max(most, taken - disk.committed)
    }
    await done
    expect(disk.committed).toBe(400)
    expect(most).toBeLessThan(110)
  })

  it('does not treat a disk that needs a minute as a silent service', async () => {
    const clock = new VirtualClock()
    const connection = new AbortController()
    const disk = new HeldDisk()
    async function* fast(): AsyncGenerator<Uint8Array> {
      for (let seq = 1; seq <= 6; seq++)
        yield encoder.encode(frame(seq, 'agent.message', { payload: { body: 'x'.repeat(MIB) } }))
    }
    const done = drainTo(disk, { chunks: fast(), connection, clock })
    await clock.settle()
    await clock.advance(60_000)
    expect(connection.signal.aborted).toBe(false)
    while (disk.waiting > 0) {
      disk.letOneThrough()
      await clock.settle()
    }
    await done
    expect(disk.committed).toBe(6)
  })

  describe('a message', () => {
    /** Drains chunks that the test sends. @returns the sequence numbers of each commit. */
    async function committing(during: (send: (chunk: string) => void, clock: VirtualClock) => Promise<void>) {
      const clock = new VirtualClock()
      const commits: (string | null)[][] = []
      const chunks = new PassThrough()
      const done = drainChunks({
        chunks,
        connection: new AbortController(),
        accept: (one) => ({ meaning: readFrame(one, 0) as Pending['meaning'], raw: '', at: 0 }),
        commit: async (batch) => void commits.push(batch.map(({ meaning }) => meaning.seq)),
        clock,
      })
      await during((chunk) => void chunks.write(chunk), clock)
      chunks.end()
      await done
      return commits
    }
    const message = (seq: number) => frame(seq, 'user.message')

    it('waits for the first frames of its turn, and shares their commit', async () => {
      const commits = await committing(async (send, clock) => {
        send(message(1))
        await clock.advance(1)
        send(message(2))
        send(frame(3, 'turn.started') + frame(4, 'tool.required'))
        await clock.advance(0)
        send(frame(5))
        await clock.advance(0)
      })
      expect(commits).toEqual([['1', '2', '3', '4'], ['5']])
    })

    it('is committed after two milliseconds if nothing follows, and delays no other frame', async () => {
      const commits = await committing(async (send, clock) => {
        send(message(1))
        await clock.advance(2)
        send(frame(2))
        await clock.advance(0)
        send(frame(3))
        await clock.advance(0)
      })
      expect(commits).toEqual([['1'], ['2'], ['3']])
    })

    it('is committed at once when the connection ends, and when it is not read until then', async () => {
      const ended = await committing(async (send) => send(message(1)))
      expect(ended).toEqual([['1']])
      const clock = new VirtualClock()
      const commits: number[] = []
      const window = new MemoryWindow()
      const fact = { ...turnFact('turn.completed', 'trn_1'), body: 'x'.repeat(300 * 1024), pos: 1 }
      window.take({ attempts: 0, cut: 0, fact })
      async function* one(): AsyncGenerator<Uint8Array> {
        yield encoder.encode(message(1))
      }
      const done = drainChunks({
        chunks: one(),
        connection: new AbortController(),
        accept: (each) => ({ meaning: readFrame(each, 0) as Pending['meaning'], raw: '', at: 0 }),
        commit: async (batch) => void commits.push(batch.length),
        undelivered: window,
        clock,
      })
      await clock.settle()
      expect(commits).toEqual([1])
      await clock.advance(200)
      await done
    })
  })

  describe('while handlers have a backlog', () => {
    /** Chunks that are read within `time` milliseconds, while handlers take `speed` characters a millisecond. */
    async function chunksWithin(time: number, speed: number): Promise<number> {
      const clock = new VirtualClock()
      const connection = new AbortController()
      const started = clock.steady()
      let read = 0
      async function* endless(): AsyncGenerator<Uint8Array> {
        while (!connection.signal.aborted) yield encoder.encode(frame(++read))
      }
      const done = drainChunks({
        chunks: endless(),
        connection,
        accept: () => null,
        commit: () => Promise.resolve(),
        undelivered: {
          get taken() {
            return 20 * MIB - (clock.steady() - started) * speed
          },
          watch: () => undefined,
        },
        clock,
      })
      await clock.advance(time)
      connection.abort()
      await clock.advance(1000)
      await done
      return read
    }

    it('continues as soon as few facts are left, before the next look', async () => {
      const clock = new VirtualClock()
      const window = new MemoryWindow()
      const backlog = [1, 2, 3].map((pos) => {
        const fact = { ...turnFact('turn.completed', `trn_${pos}`), body: 'x'.repeat(256 * 1024), pos }
        return { attempts: 0, cut: 0, fact }
      })
      for (const one of backlog) window.take(one)
      let read = 0
      async function* three(): AsyncGenerator<Uint8Array> {
        while (read < 3) yield encoder.encode(frame(++read))
      }
      const done = drainChunks({
        chunks: three(),
        connection: new AbortController(),
        accept: () => null,
        commit: () => Promise.resolve(),
        undelivered: window,
        clock,
      })
      await clock.settle()
      expect(read).toBe(1)
      for (const one of backlog) window.release(one)
      await clock.settle()
      expect(read).toBe(3)
      await done
    })

    it('continues when fast handlers have taken most of it', async () => {
      expect(await chunksWithin(1000, 4096)).toBeLessThan(12)
    })

    it('does not wait for slow handlers, nor for one that accepts nothing', async () => {
      expect(await chunksWithin(1000, 100)).toBeGreaterThan(45)
      expect(await chunksWithin(1000, 0)).toBeGreaterThan(45)
    })
  })
})
