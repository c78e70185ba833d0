import type { Random } from '../../src/std/ports.ts'
import { signServiceWebhook } from '../../src/std/signature.ts'
import type { WebhookAnswer, WebhookDelivery } from '../../src/core/webhook.ts'
import { createWebhookReceiver } from '../../src/sidecar/source/webhook.ts'
import { VirtualClock } from '../support/clock.ts'
import { deafObserver, keepingLog } from '../support/ports.ts'
import { Tally } from './tally.ts'
import { mutateText, pick, whole } from './mutate.ts'

const SECRETS = ['secret-of-now', 'secret-of-before']
const TOLERANCE = 300_000

/** Forged, mutated and late deliveries at the receiver: none is accepted. @throws on the first that is. */
export async function attackWebhooks(count: number, random: Random): Promise<Tally> {
  const clock = new VirtualClock()
  let stored = 0
  const receiver = createWebhookReceiver({
    tolerance: TOLERANCE,
    secrets: [{ current: SECRETS }],
    reload: () => null,
    storeHints: async (hints) => void (stored += hints.length),
    observer: deafObserver,
    clock,
    log: keepingLog(),
  })
  const receive = (delivery: WebhookDelivery) =>
    new Promise<WebhookAnswer>((resolve) => receiver.receive(delivery, resolve))
  const genuine = (): WebhookDelivery & { body: Buffer; timestamp: string; signature: string } => {
    const timestamp = String(clock.now() - whole(random, TOLERANCE))
    const body = Buffer.from(
      `{"event":"turn.completed","data":{"session_id":"s${whole(random, 9)}","turn_id":"t${whole(random, 999)}"}}`,
    )
    return { timestamp, body, signature: signServiceWebhook(pick(random, SECRETS), timestamp, body) }
  }
  const first = await receive(genuine())
  if (first.status !== 200 || stored !== 1)
    throw new Error('a genuine delivery was refused: nothing is tried')
  const tally = new Tally()
  for (let tried = 0; tried < count; tried++) {
    const forged = forge(genuine, random)
    const { status, outcome } = await receive(forged)
    if (status !== 401)
      throw new Error(`accepted: ${JSON.stringify({ ...forged, body: forged.body.toString() })}`)
    tally.note(outcome)
  }
  if (stored !== 1) throw new Error(`${stored - 1} hints were stored`)
  return tally
}

type Genuine = { timestamp: string; signature: string; body: Buffer }
type Forgery = (real: Genuine, random: Random) => WebhookDelivery

const FORGERIES: readonly Forgery[] = [
  (real, random) => ({ ...real, body: Buffer.from(mutateText(real.body.toString(), random)) }),
  (real, random) => ({ ...real, body: flip(real.body, random) }),
  (real, random) => ({ ...real, signature: mutateText(real.signature, random) }),
  (real, random) => ({ ...real, signature: flip(Buffer.from(real.signature), random).toString('latin1') }),
  (real, random) => ({ ...real, timestamp: mutateText(real.timestamp, random) }),
  (real, random) => ({ ...real, timestamp: String(Number(real.timestamp) + 1 + whole(random, 100_000)) }),
  (real) => ({ ...real, timestamp: `0${real.timestamp}` }),
  (real) => ({ ...real, timestamp: String(Math.floor(Number(real.timestamp) / 1000)) }),
  (real) => ({ ...real, signature: real.signature.toUpperCase().replace(/^\d+$/, '') }),
  (real) => ({ ...real, signature: `${real.signature}${real.signature}` }),
  (real) => ({ ...real, signature: `${real.signature}\n` }),
  (real) => ({ ...real, signature: `sha256=${real.signature}` }),
  (real) => ({ ...real, signature: real.signature.slice(0, -2) }),
  (real) => ({ ...real, signature: signServiceWebhook('another-secret', real.timestamp, real.body) }),
  (real) => ({ ...real, signature: signServiceWebhook('', real.timestamp, real.body) }),
  (real) => ({ ...real, signature: signServiceWebhook(SECRETS[0] ?? '', '', real.body) }),
  (real) => ({ ...real, signature: undefined }),
  (real) => ({ ...real, timestamp: undefined }),
  (real) => ({ ...real, body: Buffer.concat([real.body, Buffer.from([0])]) }),
  (real) => ({ ...real, body: Buffer.alloc(0) }),
  // Genuine, but of another time.
  ({ timestamp, body }, random) => {
    const late = String(Number(timestamp) + pick(random, [-1, 1]) * (2 * TOLERANCE + 1))
    return { timestamp: late, body, signature: signServiceWebhook(SECRETS[0] ?? '', late, body) }
  },
]

/** One that differs from the genuine one: a mutation may put back what was there. */
function forge(genuine: () => Genuine, random: Random): WebhookDelivery {
  for (;;) {
    const real = genuine()
    const forged = pick(random, FORGERIES)(real, random)
    const { timestamp, signature, body } = forged
    if (timestamp !== real.timestamp || signature !== real.signature || !body.equals(real.body)) return forged
  }
}

function flip(bytes: Buffer, random: Random): Buffer {
  const copy = Buffer.from(bytes)
  const at = whole(random, copy.length)
  copy[at] = (copy[at] ?? 0) ^ (1 << whole(random, 8))
  return copy
}
