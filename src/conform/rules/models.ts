import type { JsonObject } from '../../std/json.ts'
import { writing, type Check } from '../check.ts'
import { at, boolean, is, number, orNull, rowsOf, string, textAt } from '../kind.ts'
import { fill } from '../places.ts'
import { describeReply, messageOf, type Reply } from '../reply.ts'
import { Stuck } from '../stuck.ts'
import type { Trial } from '../trial.ts'

const PATH = '/v1/model-credentials'
const SCOPE = ['credentials:write']

const connect = (trial: Trial, body: JsonObject): Promise<Reply> => trial.post(PATH, body)

async function count(trial: Trial): Promise<number> {
  return rowsOf((await trial.get(PATH, { limit: '100' })).json).length
}

async function refused(trial: Trial): Promise<void> {
  const before = await count(trial)
  const bad: [string, JsonObject][] = [
    ['MOD-22', {}],
    ['MOD-22', { key: 7 }],
    ['MOD-33 MOD-35', { key: 'sk-conform-ambiguous' }],
    ['MOD-23', { key: 'sk-conform', provider: 'conform-missing' }],
    ['MOD-40', { key: 'sk-conform', provider: 'conform-missing', is_default: 'yes' }],
    ['ERR-04', { key: 'sk-conform', secret: 'x' }],
  ]
  for (const [ids, body] of bad) {
    const reply = await connect(trial, body)
    const refused = trial.refused(`${ids} ERR-06`, reply, 400, 'invalid_request')
    if (refused && ids.includes('MOD-33')) trial.mentions('MOD-34', reply, 'provider', '/v1/model-connectors')
  }
  const connectors = await trial.get('/v1/model-connectors')
  const provider = textAt(connectors.json, 'data.0.id')
  const rejected = await connect(trial, { key: 'conform-rejected-key', provider })
  if (rejected.status < 300) {
    trial.leave('MOD-36 MOD-38 MOD-39', 'this deployment accepted an invalid key')
    await disconnect(trial, textAt(rejected.json, 'id'))
  } else {
    trial.refused('MOD-38', rejected, 400, 'invalid_request')
    trial.expect(
      'MOD-39',
      rejected,
      'a sentence of the provider',
      /["“'].+["”']|: .+/.test(messageOf(rejected)),
    )
    trial.value('MOD-36', rejected, 'the number of connections', await count(trial), is(before))
  }
  const model = await trial.post('/v1/sessions', trial.marked({ agent: { model: 'conform-no-model' } }))
  const stray = await trial.post(
    '/v1/sessions',
    trial.marked({ agent: { model_credential_id: 'conform-missing' } }),
  )
  const own = textAt((await trial.get(PATH)).json, 'data.0.id')
  const wrong = await trial.post(
    '/v1/sessions',
    trial.marked({ agent: { model: 'conform-no-model', model_credential_id: own } }),
  )
  const sentences = new Set([rejected, stray, wrong].map(messageOf))
  trial.expect('MOD-50', wrong, 'three different errors', sentences.size === 3, [...sentences])
  trial.refused('ERR-12', model, 400, 'invalid_request')
  trial.refused('ERR-13', stray, 400, 'invalid_request')
}

async function disconnect(trial: Trial, id: string): Promise<Reply | null> {
  const place = trial.places.disconnect
  return place === null ? null : trial.deployment.call(place.method, fill(place, { credential: id }))
}

async function connected(trial: Trial): Promise<void> {
  if (trial.places.disconnect === null)
    throw new Stuck('the description does not show how to remove a connection')
  const connectors = rowsOf((await trial.get('/v1/model-connectors')).json)
  const prefixes = connectors.map((one) => textAt(one, 'key_prefix'))
  const lone = connectors.find((one) => {
    const prefix = textAt(one, 'key_prefix')
    return (
      prefix !== '' &&
      prefixes.filter((other) => other.startsWith(prefix) || prefix.startsWith(other)).length === 1
    )
  })
  if (lone === undefined) throw new Stuck('no connector has a key prefix of its own')
  const key = `${textAt(lone, 'key_prefix')}conform-${trial.ground.belongings.mark}-wxyz`
  const before = await trial.get(PATH, { limit: '100' })
  const session = await trial.create({})
  const made = await connect(trial, { key })
  if (made.status >= 300) throw new Stuck(`a key of a real account would be needed: ${describeReply(made)}`)
  const id = textAt(made.json, 'id')
  trial.shape(made, made.json, [
    ['object', 'MOD-01 GEN-21', is('model_credential')],
    ['id', 'MOD-02 MOD-21', string],
    ['model', 'MOD-04 MOD-24 MOD-16', is(textAt(lone, 'default_model'))],
    ['label', 'MOD-05 MOD-26', string],
    ['connector', 'MOD-06 MOD-32 MOD-15', is(textAt(lone, 'id'))],
    ['is_default', 'MOD-07', boolean],
    ['last4', 'MOD-09 MOD-10', is('wxyz')],
    ['verified', 'MOD-11 MOD-37', is(true)],
    ['key', 'MOD-12', is(undefined)],
  ])
  const list = await trial.get(PATH, { limit: '100' })
  trial.expect('MOD-12 MOD-14', list, 'no key', !list.text.includes(key), 'the key')
  const row = rowsOf(list.json).find((one) => textAt(one, 'id') === id)
  trial.value('MOD-10', list, 'last4 in the list', at(row, 'last4'), is(undefined))
  const again = await connect(trial, { key })
  trial.is('MOD-49', again, 'id', is(id))
  trial.value('MOD-49', again, 'connections', await count(trial), is(rowsOf(before.json).length + 1))
  const other = await connect(trial, {
    key,
    model: 'conform-other',
    provider: textAt(lone, 'id'),
    label: 'conform',
    base_url: 'https://proxy.invalid',
    is_default: false,
  })
  if (other.status < 300) await second(trial, other, id)
  const still = await trial.get(`/v1/sessions/${textAt(session.json, 'id')}`)
  trial.is(
    'MOD-44',
    still,
    'agent.model_credential_id',
    is(textAt(session.json, 'agent.model_credential_id')),
  )
  const used = await trial.create({ agent: { model_credential_id: id } })
  trial.is('MOD-03 SES-70', used, 'agent.model_credential_id', is(id))
  trial.is('SES-39 MOD-42 GEN-13', used, 'agent.model', is(textAt(made.json, 'model')))
  const gone = await disconnect(trial, id)
  if (gone !== null) {
    trial.note('MOD-28', `${trial.places.disconnect.method} ${trial.places.disconnect.path}`)
    trial.is('MOD-29', gone, 'sessions_moved', number)
    trial.is('MOD-45', gone, 'sessions_moved', is(1))
    trial.is('MOD-30', gone, 'moved_to', orNull(string))
    const moved = await trial.get(`/v1/sessions/${textAt(used.json, 'id')}`)
    trial.is('MOD-45', moved, 'agent.model_credential_id', is(at(gone.json, 'moved_to')))
  }
  for (const reply of [session, used]) await trial.remove(textAt(reply.json, 'id'))
}

async function second(trial: Trial, other: Reply, first: string): Promise<void> {
  const id = textAt(other.json, 'id')
  trial.expect('MOD-23..27', other, 'an accepted connection', other.status < 300)
  trial.is('MOD-26', other, 'label', is('conform'))
  trial.is('MOD-24 MOD-43', other, 'model', is('conform-other'))
  trial.is('MOD-27', other, 'is_default', is(false))
  trial.expect('MOD-43 MOD-42', other, 'a connection of its own', id !== first, id)
  await disconnect(trial, id)
}

/** One check does both, one after the other, because both count the connections. */
const connections = writing(
  'a model is connected, used and removed, and a bad key is not stored',
  'ERR-04 ERR-06 ERR-12 ERR-13 GEN-13 GEN-21 MOD-01..12 MOD-14..16 MOD-21..30 MOD-32..40 MOD-42..45 MOD-49 MOD-50 SES-39 SES-70',
  async (trial) => {
    await refused(trial)
    await connected(trial)
  },
  SCOPE,
)

export const models: readonly Check[] = [connections]
