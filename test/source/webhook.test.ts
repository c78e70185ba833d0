import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Hint } from '../../src/core/hint.ts'
import { fanOut } from '../../src/core/observer.ts'
import { signServiceWebhook } from '../../src/std/signature.ts'
import type { WebhookAnswer, WebhookDelivery } from '../../src/core/webhook.ts'
import { createWebhookReceiver } from '../../src/sidecar/source/webhook.ts'
import { StoreError } from '../../src/core/store-error.ts'
import { VirtualClock } from '../support/clock.ts'
import { keepingLog } from '../support/ports.ts'

const SECRET = 'a-secret-of-the-service'
const BODY = JSON.stringify({ event: 'turn.completed', session_id: 'ses_1', turn_id: 'trn_1' })
const TOLERANCE = 300_000

function open(secrets: readonly string[] = [SECRET]) {
  const clock = new VirtualClock()
  const hints: Hint[] = []
  const outcomes: string[] = []
  const world = {
    clock,
    hints,
    outcomes,
    secrets: [...secrets],
    /** Reads the secrets again. */
    reload: (): Promise<boolean> | null => null,
    observe: (outcome: string): void => void outcomes.push(outcome),
    store: async (given: readonly Hint[]): Promise<void> => void hints.push(...given),
  }
  const receiver = createWebhookReceiver({
    tolerance: TOLERANCE,
    secrets: [
      {
        get current() {
          return world.secrets
        },
      },
    ],
    reload: () => world.reload(),
    storeHints: (given) => world.store(given),
    observer: fanOut([{ webhook: (outcome) => world.observe(outcome) }]),
    clock,
    log: keepingLog(),
  })
  const receive = (delivery: WebhookDelivery) =>
    new Promise<WebhookAnswer>((resolve) => receiver.receive(delivery, resolve))
  const deliver = (more: { body?: string; secret?: string; signature?: string; timestamp?: string } = {}) => {
    const { body = BODY, secret = SECRET, timestamp = String(clock.now()) } = more
    const signature = more.signature ?? signServiceWebhook(secret, timestamp, body)
    return receive({ signature, timestamp, body: Buffer.from(body) })
  }
  return Object.assign(world, { receive, deliver, receiver })
}

describe('the webhook receiver', () => {
  it('answers 2xx once the hint is stored, and the hint has the session', async () => {
    const world = open()
    let stored: () => void = () => undefined
    world.store = (hints) => {
      world.hints.push(...hints)
      return new Promise<void>((resolve) => (stored = resolve))
    }
    let answered = false
    const delivery = world.deliver().then((answer) => {
      answered = true
      return answer
    })
    await world.clock.settle()
    expect(answered).toBe(false)
    stored()
    expect(await delivery).toEqual({ status: 200, outcome: 'accepted' })
    expect(world.hints).toMatchObject([
      { sessionId: 'ses_1', channel: 'webhook', subject: 'turn.final/trn_1' },
    ])
  })

  const genuine = signServiceWebhook(SECRET, '1763701200000', BODY)
  // [fault webhook-3]
  it.each([
    ['forged', { secret: 'another-sender' }],
    ['of another body', { signature: signServiceWebhook(SECRET, '1763701200000', `${BODY} `) }],
    ['of another time', { signature: signServiceWebhook(SECRET, '1763701200001', BODY) }],
    ['truncated', { signature: genuine.slice(0, -1) }],
    ['cut to half', { signature: genuine.slice(0, 32) }],
    ['upper case', { signature: genuine.toUpperCase() }],
    ['doubled', { signature: `${genuine}${genuine}` }],
    ['doubled by a proxy', { signature: `${genuine}, ${genuine}` }],
    ['with a tail that is not hex', { signature: `${genuine.slice(0, -2)}zz` }],
    ['with a line end', { signature: `${genuine}\n` }],
    ['with a prefix', { signature: `sha256=${genuine}` }],
    ['empty', { signature: '' }],
  ])('refuses a signature that is %s before it parses the body', async (_, more) => {
    const world = open()
    const parsing = vi.spyOn(JSON, 'parse')
    onTestFinished(() => parsing.mockRestore())
    expect(await world.deliver(more)).toEqual({ status: 401, outcome: 'forged' })
    expect([parsing.mock.calls, world.hints]).toEqual([[], []])
  })

  it('answers 503 to a signature of no known secret while the secrets of other processes cannot be read', async () => {
    const world = open()
    const delivery = { secret: 'a-secret-of-another-process' }
    world.reload = async () => false
    expect(await world.deliver(delivery)).toEqual({ status: 503, outcome: 'store_failed' })
    world.reload = async () => true
    expect(await world.deliver(delivery)).toEqual({ status: 401, outcome: 'forged' })
    world.reload = async () => {
      world.secrets.push(delivery.secret)
      return true
    }
    expect(await world.deliver(delivery)).toEqual({ status: 200, outcome: 'accepted' })
    expect(world.outcomes).toEqual(['store_failed', 'forged', 'accepted'])
  })

  it('refuses a delivery without its headers', async () => {
    const world = open()
    const body = Buffer.from(BODY)
    expect((await world.receive({ signature: undefined, timestamp: '1763701200000', body })).status).toBe(401)
    expect((await world.receive({ signature: genuine, timestamp: undefined, body })).status).toBe(401)
  })

  // [fault webhook-4]
  it.each([
    ['six minutes old', -360_000, 'stale'],
    ['six minutes ahead', 360_000, 'stale'],
    ['five minutes old', -300_000, 'accepted'],
    ['five minutes ahead', 300_000, 'accepted'],
  ])('treats a timestamp %s as %3$s', async (_, off, outcome) => {
    const world = open()
    expect((await world.deliver({ timestamp: String(world.clock.now() + off) })).outcome).toBe(outcome)
  })

  // [fault webhook-4]
  it.each(['1763701200', '', '-1', '1.7637012e12', ' 1763701200000', '9'.repeat(17)])(
    'counts %o as stale: it is no time in milliseconds',
    async (timestamp) => {
      expect(await open().deliver({ timestamp })).toEqual({ status: 401, outcome: 'stale' })
    },
  )

  // [fault webhook-1]
  it('stores the same delivery once when it comes a thousand times at once', async () => {
    const world = open()
    const timestamp = String(world.clock.now())
    const answers = await Promise.all(Array.from({ length: 1000 }, () => world.deliver({ timestamp })))
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    expect(world.hints).toHaveLength(1)
    expect(world.outcomes.filter((outcome) => outcome === 'duplicate')).toHaveLength(999)
  })

  it('stores deliveries that come together by one write', async () => {
    const world = open()
    let writes = 0
    const { store } = world
    world.store = (hints) => {
      writes++
      return store(hints)
    }
    const bodies = Array.from({ length: 100 }, (_, index) => `{"session_id":"ses_${index}"}`)
    const answers = await Promise.all(bodies.map((body) => world.deliver({ body })))
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    expect([writes, world.hints.length]).toEqual([1, 100])
  })

  it('answers 503 to each delivery once the store is lost, to copies of stored ones and to forged ones too', async () => {
    const world = open()
    const timestamp = String(world.clock.now())
    await world.deliver({ timestamp })
    expect(await world.deliver({ timestamp })).toEqual({ status: 200, outcome: 'duplicate' })
    world.receiver.lose()
    for (const more of [{ timestamp }, {}, { secret: 'wrong' }])
      expect(await world.deliver(more)).toEqual({ status: 503, outcome: 'store_failed' })
  })

  // [fault webhook-9] [fault process-6]
  it('answers 503 when the hint cannot be stored, to copies too, and accepts the next try', async () => {
    const world = open()
    const { store } = world
    world.store = () => Promise.reject(new StoreError('full'))
    const timestamp = String(world.clock.now())
    const answers = await Promise.all([world.deliver({ timestamp }), world.deliver({ timestamp })])
    expect(answers).toEqual([
      { status: 503, outcome: 'store_failed' },
      { status: 503, outcome: 'store_failed' },
    ])
    world.store = store
    expect(await world.deliver({ timestamp })).toEqual({ status: 200, outcome: 'accepted' })
    expect(world.hints).toHaveLength(1)
  })

  it('answers each other delivery of a batch when one of its hints cannot be written', async () => {
    const world = open()
    const { store } = world
    world.store = async (hints) => {
      if (hints.some(({ sessionId }) => sessionId === 'ses_bad')) throw new TypeError('cannot be bound')
      await store(hints)
    }
    const bodies = ['ses_1', 'ses_bad', 'ses_2'].map((id) => `{"session_id":"${id}"}`)
    const answers = await Promise.all(bodies.map((body) => world.deliver({ body })))
    expect(answers.map(({ status }) => status)).toEqual([200, 503, 200])
    expect(world.hints.map(({ sessionId }) => sessionId)).toEqual(['ses_1', 'ses_2'])
  })

  it('does not write a batch again hint by hint when the store itself fails', async () => {
    const world = open()
    let writes = 0
    world.store = () => {
      writes++
      return Promise.reject(new StoreError('full'))
    }
    const answers = await Promise.all(['1', '2'].map((body) => world.deliver({ body })))
    expect([answers.map(({ status }) => status), writes]).toEqual([[503, 503], 1])
  })

  it.each([
    ['is stored', false],
    ['cannot be stored', true],
  ])('answers a batch that %s though one answer and the observer throw', async (_, fails) => {
    const world = open()
    const { store } = world
    if (fails) world.store = () => Promise.reject(new StoreError('full'))
    world.observe = () => {
      throw new Error('of the observer')
    }
    const timestamp = String(world.clock.now())
    const signature = signServiceWebhook(SECRET, timestamp, BODY)
    world.receiver.receive({ signature, timestamp, body: Buffer.from(BODY) }, () => {
      throw new Error('its connection is closed')
    })
    const others = [world.deliver({ timestamp }), world.deliver({ body: `${BODY} ` })]
    const statuses = (await Promise.all(others)).map(({ status }) => status)
    expect(statuses).toEqual(fails ? [503, 503] : [200, 200])
    // None of them is pending: what was not stored is stored by the next try.
    world.store = store
    world.observe = () => undefined
    const outcome = fails ? 'accepted' : 'duplicate'
    expect(await world.deliver({ timestamp })).toEqual({ status: 200, outcome })
  })

  // [fault webhook-6]
  it('accepts the old and the new secret while they rotate, and afterwards only the new one', async () => {
    const world = open(['new', 'old'])
    expect((await world.deliver({ secret: 'old' })).status).toBe(200)
    expect((await world.deliver({ secret: 'new' })).status).toBe(200)
    world.secrets = ['new']
    expect((await world.deliver({ secret: 'old', body: `${BODY} ` })).status).toBe(401)
  })

  it('asks for fewer reads of a session while its deliveries keep coming, but not for a later call', async () => {
    const world = open()
    const deliver = (event: string, turn: number) =>
      world.deliver({ body: JSON.stringify({ event, session_id: 'ses_1', turn_id: `trn_${turn}` }) })
    for (let turn = 0; turn < 40; turn++) {
      await deliver('turn.completed', turn)
      await world.clock.advance(50)
    }
    await deliver('session.action_required', 40)
    await world.clock.advance(101)
    await deliver('turn.completed', 41)
    const delays = world.hints.map(({ delay }) => delay)
    expect(delays.slice(0, 5)).toEqual([100, 100, 100, 150, 200])
    expect(delays.slice(-3)).toEqual([1000, 100, 100])
  })

  it('takes nothing when there is no secret', async () => {
    const world = open([])
    expect((await world.deliver({ secret: '' })).status).toBe(401)
  })

  it.each(['', '{"half":', '[]', '{"event":"garden.watered"}', 'null'])(
    'answers 2xx to the genuine body %o that it cannot read, and asks for a sweep',
    async (body) => {
      const world = open()
      expect(await world.deliver({ body })).toEqual({ status: 200, outcome: 'unreadable' })
      expect(world.hints).toMatchObject([{ sessionId: null }])
    },
  )
})
