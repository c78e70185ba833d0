import { reading, type Check } from '../check.ts'
import { MISSING_ID } from '../interface.ts'
import {
  array,
  at,
  beginning,
  boolean,
  ifAny,
  is,
  labels,
  milliseconds,
  number,
  present,
  rowsOf,
  string,
  strings,
  textAt,
  uuid,
  type Kind,
} from '../kind.ts'
import type { Reply } from '../reply.ts'
import type { Trial } from '../trial.ts'

/** `last_id` of an empty page may be empty. */
function lastId(reply: Reply): Kind {
  return rowsOf(reply.json).length > 0 ? string : ifAny(string)
}

export function isList(trial: Trial, reply: Reply, ids = 'GEN-22'): void {
  trial.is(ids, reply, 'object', is('list'))
  trial.is(ids, reply, 'data', array)
  trial.is(ids, reply, 'has_more', boolean)
  trial.is(ids, reply, 'last_id', lastId(reply))
}

/** Checks a paged list at the limits of its parameters. */
async function pages(trial: Trial, path: string): Promise<Reply> {
  const page = await trial.get(path)
  isList(trial, page)
  trial.refused('LIM-03 ERR-09', await trial.get(path, { limit: '101' }), 400, 'invalid_request')
  trial.refused('LIM-03', await trial.get(path, { limit: '0' }), 400, 'invalid_request')
  trial.status('LIM-03', await trial.get(path, { limit: '100' }), 200)
  await lookingFurther(trial, path)
  const lost = await trial.get(path, { after: MISSING_ID })
  trial.is('LIM-63', lost, 'data', is([]))
  trial.is('LIM-63', lost, 'has_more', is(false))
  return page
}

/** Others may add and remove rows at the same time: the result counts only if reads before and after it are equal. */
async function lookingFurther(trial: Trial, path: string): Promise<void> {
  const two = async (): Promise<number> => rowsOf((await trial.get(path, { limit: '2' })).json).length
  const before = await two()
  const small = await trial.get(path, { limit: '1' })
  trial.expect('LIM-03', small, 'at most one row', rowsOf(small.json).length <= 1)
  if (before === (await two())) trial.is('LIM-65', small, 'has_more', is(before > 1))
}

const sessions = reading(
  'sessions are listed',
  'SES-82 SES-83 SES-125 GEN-22 LIM-03 ERR-09 ERR-06 LIM-63 LIM-65 LIM-66 LIM-67 LIM-68 SES-39',
  async (trial) => {
    const path = '/v1/sessions'
    const page = await pages(trial, path)
    trial.status('SES-82', page, 200)
    for (const row of rowsOf(page.json)) {
      trial.value('SES-82', page, 'object of an entry', at(row, 'object'), is('session'))
      trial.value('SES-83', page, 'required_actions of an entry', at(row, 'required_actions'), array)
    }
    if (rowsOf(page.json).length === 0) trial.leave('SES-83', 'there is no session')
    for (const order of ['asc', 'desc'])
      trial.status(order === 'asc' ? 'LIM-66 SES-82' : 'LIM-67 SES-82', await trial.get(path, { order }), 200)
    trial.refused('ERR-06', await trial.get(path, { order: 'upwards' }), 400, 'invalid_request')
    trial.refused('ERR-06', await trial.get(path, { status: 'conform' }), 400, 'invalid_request')
    for (const status of ['idle', 'working', 'requires_action', 'failed']) {
      const some = await trial.get(path, { status })
      const others = rowsOf(some.json).filter((row) => at(row, 'status') !== status)
      trial.expect(
        'SES-125',
        some,
        `only sessions that are ${status}`,
        some.status === 200 && others.length === 0,
      )
    }
    await implicitOrder(trial, path)
    const credentials = await trial.get('/v1/model-credentials', { limit: '100' })
    const models = new Map(rowsOf(credentials.json).map((row) => [textAt(row, 'id'), textAt(row, 'model')]))
    for (const row of rowsOf(page.json)) {
      const model = models.get(textAt(row, 'agent.model_credential_id'))
      if (model !== undefined) trial.value('SES-39', page, 'agent.model', at(row, 'agent.model'), is(model))
    }
  },
)

async function implicitOrder(trial: Trial, path: string): Promise<void> {
  const ids = async (query: Record<string, string>) =>
    rowsOf((await trial.get(path, { limit: '5', ...query })).json).map((row) => textAt(row, 'id'))
  const before = await ids({ order: 'desc' })
  const reply = await trial.get(path, { limit: '5' })
  const upwards = await ids({ order: 'asc' })
  const after = await ids({ order: 'desc' })
  if (before.join() === upwards.join())
    return trial.leave('LIM-68', 'there are too few sessions for this check')
  if (before.join() !== after.join()) return trial.leave('LIM-68', 'the list changed meanwhile')
  const seen = rowsOf(reply.json).map((row) => textAt(row, 'id'))
  trial.expect('LIM-68', reply, 'the order of desc', seen.join() === before.join(), seen)
}

const plain = reading(
  'lists without an order accept only limit and after',
  'WHS-10 WHS-11 AGT-28..30 AGT-32 LIM-03 LIM-63 LIM-65 LIM-69 LIM-71 GEN-22 ERR-09',
  async (trial) => {
    const lists = [
      ['/v1/webhooks', 'WHS-10', 'LIM-69'],
      ['/v1/agents', 'AGT-28', 'AGT-29 AGT-30'],
      ['/v1/environment-profiles', 'AGT-32', 'LIM-71'],
    ] as const
    for (const [path, answers, limits] of lists) {
      const page = await pages(trial, path)
      trial.status(answers, page, 200)
      trial.status(limits, await trial.get(path, { limit: '2', after: MISSING_ID }), 200)
      trial.refused(limits, await trial.get(path, { order: 'asc' }), 400, 'invalid_request')
    }
    const hooks = await trial.get('/v1/webhooks', { limit: '100' })
    const shown = rowsOf(hooks.json).filter((row) => at(row, 'secret') !== undefined)
    if (rowsOf(hooks.json).length === 0) trial.leave('WHS-11', 'there is no subscription')
    else trial.expect('WHS-11', hooks, 'no secret in the list', shown.length === 0, 'a secret')
  },
)

const profiles = reading('environment profiles have their fields', 'AGT-22..26', async (trial) => {
  const page = await trial.get('/v1/environment-profiles')
  for (const row of rowsOf(page.json)) {
    trial.shape(page, row, [
      ['object', 'AGT-22', is('environment_profile')],
      ['id', 'AGT-23', string],
      ['name', 'AGT-24', string],
      ['is_default', 'AGT-25', boolean],
      ['variable_count', 'AGT-26', number],
    ])
  }
  trial.leave('AGT-22..26', 'there is no environment profile')
})

const models = reading(
  'model connectors and connections are listed',
  'MOD-01..04 MOD-13..17 MOD-19 MOD-20 MOD-12 LIM-70 GEN-22',
  async (trial) => {
    const connectors = await trial.get('/v1/model-connectors')
    trial.status('MOD-19', connectors, 200)
    isList(trial, connectors)
    for (const row of rowsOf(connectors.json)) {
      trial.shape(connectors, row, [
        ['id', 'MOD-15', string],
        ['default_model', 'MOD-16', present],
        ['key_prefix', 'MOD-17', present],
      ])
    }
    const page = await trial.get('/v1/model-credentials', { limit: '100' })
    trial.status('MOD-20 LIM-70', page, 200)
    trial.refused(
      'LIM-70',
      await trial.get('/v1/model-credentials', { order: 'asc' }),
      400,
      'invalid_request',
    )
    isList(trial, page)
    for (const row of rowsOf(page.json)) {
      trial.shape(page, row, [
        ['object', 'MOD-01', is('model_credential')],
        ['id', 'MOD-02 MOD-03', string],
        ['model', 'MOD-04 MOD-13', string],
        ['key', 'MOD-12 MOD-14', is(undefined)],
        ['base_url', 'MOD-14', is(undefined)],
        ['last4', 'MOD-13', is(undefined)],
      ])
    }
    trial.leave('MOD-01..04 MOD-13 MOD-14 MOD-12', 'there is no model connection')
  },
)

const existing = reading(
  'the newest session has its fields',
  'SES-01..05 SES-08 SES-09 SES-12 SES-14 SES-16 SES-21 SES-23..36 PRE-01..03 SES-42 GEN-21 SES-84',
  async (trial) => {
    const page = await trial.get('/v1/sessions', { limit: '1' })
    const id = textAt(rowsOf(page.json)[0], 'id')
    if (id === '') return trial.leave('SES-01..05', 'there is no session')
    const reply = await trial.get(`/v1/sessions/${id}`)
    if (reply.status === 404) return
    trial.status('SES-84', reply, 200)
    isSession(trial, reply, reply.json)
  },
)

/** Every specified field of a session, except those that need a scenario of their own. */
export function isSession(trial: Trial, reply: Reply, session: unknown): void {
  trial.shape(reply, session, [
    ['object', 'SES-01 GEN-21', is('session')],
    ['id', 'SES-02', uuid],
    ['created_at', 'SES-08', milliseconds],
    ['updated_at', 'SES-09', milliseconds],
    ['title', 'SES-12', string],
    ['metadata', 'SES-14', labels],
    ['source', 'SES-16', ifAny(string)],
    ['created_by_token', 'SES-21', string],
    ['agent.id', 'SES-23', present],
    ['agent.model', 'SES-24', present],
    ['agent.model_credential_id', 'SES-25', present],
    ['agent.approval_mode', 'SES-26', present],
    ['agent.instructions', 'SES-27', present],
    ['agent.permission_rules', 'SES-28', array],
    ['agent.tools', 'SES-29', array],
    ['environment.type', 'SES-30', is('sandbox')],
    ['environment.state', 'SES-31', present],
    ['environment.workspace_directory', 'SES-32', present],
    ['environment.repo.full_name', 'SES-33', present],
    ['environment.repo.branch', 'SES-34', present],
    ['environment.repo.clone_error', 'SES-35', present],
    ['environment.branch', 'SES-42', is(undefined)],
    ['required_actions', 'SES-36', array],
    ['preview.url', 'PRE-01', present],
    ['preview.port', 'PRE-02', present],
    ['preview.published_url', 'PRE-03', present],
  ])
  const status = textAt(session, 'status')
  const states: Readonly<Record<string, string>> = {
    idle: 'SES-03',
    working: 'SES-04',
    requires_action: 'SES-05',
  }
  const id = states[status]
  if (id !== undefined) trial.value(id, reply, 'status', status, is(status))
}

export function isSubscription(trial: Trial, reply: Reply, subscription: unknown): void {
  trial.shape(reply, subscription, [
    ['object', 'WHS-01', is('webhook.subscription')],
    ['id', 'WHS-02', beginning('whsub_')],
    ['url', 'WHS-03', string],
    ['events', 'WHS-04', strings],
    ['active', 'WHS-07', boolean],
  ])
}

export const lists: readonly Check[] = [sessions, plain, profiles, models, existing]
