import { verifyServiceWebhook } from '../../std/signature.ts'
import { writing, type Check } from '../check.ts'
import { WEBHOOK_EVENTS } from '../interface.ts'
import { at, is, kind, rowsOf, string, textAt } from '../kind.ts'
import type { Delivery } from '../receiver.ts'
import { describeReply } from '../reply.ts'
import { speech } from '../speech.ts'
import { Stuck } from '../stuck.ts'
import { required, say, settledTurn, turnOf } from '../talk.ts'
import type { Trial } from '../trial.ts'
import { isSubscription } from './lists.ts'

const subscriptions = writing(
  'a subscription is created once, listed without its secret, and removed',
  'WHS-01..07 WHS-09..15 ERR-23 ERR-06 ERR-21 GEN-21 GEN-22',
  async (trial) => {
    const url = `https://conform.invalid/${trial.ground.belongings.mark}`
    const events = ['turn.completed', 'turn.failed']
    const made = await trial.post('/v1/webhooks', { url, events })
    if (made.status === 403) throw new Stuck(describeReply(made))
    trial.expect('WHS-09', made, 'a subscription', made.status < 300)
    isSubscription(trial, made, made.json)
    trial.is('GEN-21', made, 'object', is('webhook.subscription'))
    trial.is('WHS-06', made, 'secret', string)
    trial.is('WHS-03', made, 'url', is(url))
    trial.is('WHS-04', made, 'events', is(events))
    trial.is('WHS-07', made, 'active', is(true))
    const id = textAt(made.json, 'id')
    const twice = await trial.post('/v1/webhooks', { url, events: events.toReversed() })
    if (trial.refused('WHS-14 ERR-23', twice, 409, 'conflict')) trial.mentions('WHS-15', twice, id)
    const all = await trial.post('/v1/webhooks', { url, events: [] })
    trial.expect('WHS-14 WHS-05', all, 'a subscription of its own', all.status < 300)
    const kept = at(all.json, 'events')
    const every = WEBHOOK_EVENTS.map(([name]) => name)
    const means =
      JSON.stringify(kept) === '[]' || (Array.isArray(kept) && every.every((name) => kept.includes(name)))
    trial.expect('WHS-05', all, 'an empty list, or all events', means, kept)
    const list = await trial.get('/v1/webhooks', { limit: '100' })
    trial.status('WHS-10', list, 200)
    const row = rowsOf(list.json).find((one) => textAt(one, 'id') === id)
    isSubscription(trial, list, row)
    trial.value('WHS-11 WHS-06', list, 'secret in the list', at(row, 'secret'), is(undefined))
    trial.expect(
      'WHS-11',
      list,
      'no secret in the list',
      !list.text.includes(textAt(made.json, 'secret')),
      'the secret',
    )
    const plain = await trial.post('/v1/webhooks', {
      url: `http://conform.invalid/${trial.ground.belongings.mark}`,
      events,
    })
    trial.refused('WHS-03', plain, 400, 'invalid_request')
    const odd = await trial.post('/v1/webhooks', { url, events: ['conform.never'] })
    trial.refused('ERR-06', odd, 400, 'invalid_request')
    for (const one of [id, textAt(all.json, 'id')]) {
      const gone = await trial.deployment.call('DELETE', `/v1/webhooks/${one}`)
      trial.status('WHS-12', gone, 200)
      trial.shape(gone, gone.json, [
        ['object', 'WHS-13', string],
        ['id', 'WHS-13', is(one)],
        ['deleted', 'WHS-13', is(true)],
      ])
    }
    trial.refused(
      'WHS-12 ERR-21',
      await trial.deployment.call('DELETE', `/v1/webhooks/${id}`),
      404,
      'not_found',
    )
  },
)

const deliveries = writing(
  'deliveries arrive, signed, and name their object',
  'WHS-05 WHS-16..30 WHS-37 INP-07 GEN-17',
  async (trial) => {
    const { webhook, patience } = trial.ground
    if (webhook === null)
      throw new Stuck('needs --webhook-url, or a deployment on this machine that accepts http')
    const made = await trial.post('/v1/webhooks', { url: webhook.url, events: [] })
    if (made.status >= 300) throw new Stuck(`the subscription was refused: ${describeReply(made)}`)
    const secret = textAt(made.json, 'secret')
    const tools = [{ type: 'function', name: 'conform_webhook' }]
    const id = await trial.session({ agent: { tools } })
    await turnOf(trial, id, speech.say('delivered'))
    await say(trial, id, speech.call('conform_webhook', {}))
    const asked = await required(trial, id, 'function_call').catch(() => null)
    const failing = await trial.session()
    await say(trial, failing, speech.fail())
    await settledTurn(trial, failing)
    const mine = (session: string): Delivery[] =>
      webhook.receiver.deliveries.filter(({ body }) => body.includes(session))
    const all = (): Delivery[] => [...mine(id), ...mine(failing)]
    const names = (): string[] =>
      all()
        .map(({ body }) => eventIn(body))
        .filter((name) => name !== '')
    const limit = performance.now() + Math.min(patience, 15_000)
    const wanted = WEBHOOK_EVENTS.filter(([name]) => !name.includes('action') || asked !== null)
    while (performance.now() < limit && !wanted.every(([name]) => names().includes(name)))
      await trial.deployment.pause(50)
    if (all().length === 0) throw new Stuck('no delivery arrived')
    for (const [name, rule] of WEBHOOK_EVENTS) {
      if (names().includes(name)) trial.expect(`${rule} WHS-05`, made, name, true)
      else trial.leave(rule, 'no delivery of it arrived')
    }
    for (const delivery of all()) isDelivery(trial, delivery, secret)
    const turn = await trial.get(`/v1/sessions/${id}/turns`, { order: 'asc' })
    const completed = mine(id).find(({ body }) => eventIn(body) === 'turn.completed')
    if (completed === undefined) trial.leave('INP-07 GEN-17', 'no turn was completed')
    else {
      const named = completed.body.includes(textAt(turn.json, 'data.0.id'))
      trial.expect('INP-07 GEN-17', turn, 'turn.completed names its turn', named, completed.body)
    }
    trial.is(
      'WHS-37',
      turn,
      'data.0.artifacts',
      kind('settled', (value) => value !== null && value !== 'pending'),
    )
    await trial.deployment.call('DELETE', `/v1/webhooks/${textAt(made.json, 'id')}`)
    for (const one of [id, failing]) await trial.remove(one)
  },
)

function eventIn(body: string): string {
  return WEBHOOK_EVENTS.map(([name]) => name).find((name) => body.includes(`"${name}"`)) ?? ''
}

function isDelivery(trial: Trial, { headers, body, at: arrived }: Delivery, secret: string): void {
  const [signature, timestamp] = [
    String(headers['x-service-signature']),
    String(headers['x-service-timestamp']),
  ]
  trial.value(
    'WHS-26',
    null,
    'x-service-signature',
    signature,
    kind('hex', (text) => /^[0-9a-f]{64}$/.test(String(text))),
  )
  const near = kind('milliseconds of now', (text) => Math.abs(Number(text) - arrived) < 86_400_000)
  trial.value('WHS-27', null, 'x-service-timestamp', timestamp, near)
  const genuine = verifyServiceWebhook([secret], timestamp, body, signature)
  trial.expect('WHS-28..30', null, 'HMAC-SHA256 of <timestamp>.<raw body>', genuine, signature)
  const envelope: unknown = JSON.parse(body)
  const data = at(envelope, 'data')
  const ids = kind('an object with ids', (value) => /"[a-z_]*id":/.test(JSON.stringify(value) ?? ''))
  trial.value('WHS-23', null, 'data', data, ids)
  const embeds = ['status', 'agent', 'artifacts', 'metadata', 'title'].some(
    (key) => at(data, key) !== undefined,
  )
  trial.expect('WHS-24', null, 'ids and no object', !embeds, data)
  trial.note(
    'WHS-25',
    Object.keys(Object(envelope) as object)
      .filter((key) => key !== 'data')
      .join(', '),
  )
}

export const webhooks: readonly Check[] = [subscriptions, deliveries]
