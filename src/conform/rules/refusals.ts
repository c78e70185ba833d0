import { reading, type Check } from '../check.ts'
import type { Operation } from '../description.ts'
import { MISSING_ID } from '../interface.ts'
import { at, is } from '../kind.ts'
import { fill } from '../places.ts'
import { codeOf, type Reply } from '../reply.ts'
import { Stuck } from '../stuck.ts'
import type { Trial } from '../trial.ts'

/** Ids that do not exist, by the word in a parameter's name. */
export const MISSING_IDS = {
  session: MISSING_ID,
  turn: 'turn_conformnobody',
  artifact: 'art_conformnobody',
  webhook: 'whsub_conformnobody',
  id: 'conform-missing',
}

const WRONG_TOKEN = 'svc_pat_conform_not_a_token'

function described(trial: Trial): readonly Operation[] {
  const { operations } = trial.ground.description
  if (operations.length === 0) throw new Stuck('there is no readable description')
  return operations.filter(({ path }) => path !== '/v1/openapi.json')
}

const tokens = reading(
  'every operation refuses an invalid token',
  'AUT-01 AUT-25 ERR-52',
  async (trial) => {
    for (const operation of described(trial)) {
      const { method } = operation
      const path = fill(operation, MISSING_IDS)
      const wrong = await trial.deployment.call(method, path, { token: WRONG_TOKEN })
      trial.status('AUT-25', wrong, 401)
      const none = await trial.deployment.call(method, path, { token: null })
      trial.status('AUT-01', none, 401)
      if (codeOf(wrong) !== '') trial.note('ERR-52', codeOf(wrong))
    }
  },
  [],
)

const scopes = reading(
  'a missing scope is refused',
  'ERR-18 AUT-12 AUT-13 AUT-14 ERR-19',
  async (trial) => {
    const reply = trial.ground.health
    const held = at(reply.json, 'scopes')
    const scopesHeld: unknown[] = Array.isArray(held) ? (held as unknown[]) : []
    if (scopesHeld.length > 0 && scopesHeld.every((scope) => scope === 'cli')) return cliOnly(trial, reply)
    trial.leave('AUT-12 AUT-13 AUT-14 ERR-19', 'needs a token with only the scope cli')
    const { description } = trial.ground
    let tried = false
    for (const operation of described(trial)) {
      const [scope, ...more] = description.scopes(operation)
      if (scope === undefined || more.length > 0 || scopesHeld.includes(scope)) continue
      tried = true
      const refusal = await trial.deployment.call(operation.method, fill(operation, MISSING_IDS))
      if (trial.refused('ERR-18', refusal, 403, 'permission_denied')) trial.mentions('ERR-18', refusal, scope)
    }
    if (!tried) trial.leave('ERR-18', 'needs a token that lacks a scope')
  },
  [],
)

async function cliOnly(trial: Trial, health: Reply): Promise<void> {
  trial.is('AUT-13', health, 'usable', is(false))
  trial.expect('AUT-14', health, 'missing scopes', JSON.stringify(at(health.json, 'missing_scopes')) !== '[]')
  for (const operation of described(trial).filter(({ path }) => path !== '/v1/health')) {
    const reply = await trial.deployment.call(operation.method, fill(operation, MISSING_IDS))
    trial.refused('AUT-12 ERR-19', reply, 403, 'permission_denied')
  }
}

const unknown = reading('missing resources give not_found', 'ERR-21', async (trial) => {
  for (const operation of described(trial)) {
    const removes = operation.method === 'DELETE'
    if (operation.params.length === 0 || !(operation.method === 'GET' || removes)) continue
    // This operation also needs a path: without one it may be refused for that first.
    const query: Record<string, string> = operation.path.endsWith('/files/content') ? { path: 'a' } : {}
    const scope = trial.ground.description.scopes(operation)
    const held = at(trial.ground.health.json, 'scopes')
    if (!scope.every((one) => Array.isArray(held) && (held as unknown[]).includes(one))) continue
    if (trial.ground.description.mediaTypes(operation).includes('text/event-stream')) continue
    const reply = await trial.deployment.call(operation.method, fill(operation, MISSING_IDS), { query })
    trial.refused('ERR-21', reply, 404, 'not_found')
  }
})

const queries = reading(
  'an unknown query parameter is refused',
  'GEN-26 ERR-05',
  async (trial) => {
    const held = at(trial.ground.health.json, 'scopes')
    if (at(trial.ground.health.json, 'usable') === false) throw new Stuck('the token may only read health')
    for (const operation of described(trial)) {
      if (operation.method !== 'GET' || operation.params.length > 0) continue
      // If a stream were opened by mistake, its answer would never end.
      if (trial.ground.description.mediaTypes(operation).includes('text/event-stream')) continue
      const wanted = trial.ground.description.scopes(operation)
      if (!wanted.every((one) => Array.isArray(held) && (held as unknown[]).includes(one))) continue
      const [near] = operation.query
      const name = near === undefined ? 'conform' : `${near}x`
      const reply = await trial.get(operation.path, { [name]: '1' })
      if (!trial.refused('ERR-05', reply, 400, 'invalid_request')) continue
      if (near === undefined) continue
      trial.mentions('GEN-26', reply, ...operation.query)
      trial.suggests('GEN-26', reply, near)
    }
  },
  [],
)

const agreement = reading('every reading operation answers as described', 'VER-07 VER-08', async (trial) => {
  const { description, health } = trial.ground
  const held = at(health.json, 'scopes')
  for (const operation of described(trial)) {
    const scopes = description.scopes(operation)
    if (!scopes.every((one) => Array.isArray(held) && (held as unknown[]).includes(one))) continue
    if (operation.method !== 'GET' || description.mediaTypes(operation).includes('text/event-stream'))
      continue
    const reply = await trial.get(fill(operation, MISSING_IDS))
    const statuses = description.statuses(operation)
    const ids = operation.params.length > 0 ? 'VER-08' : 'VER-07 VER-08'
    trial.expect(
      ids,
      reply,
      `one of the statuses described: ${statuses.join(', ')}`,
      statuses.includes(String(reply.status)),
    )
    if (operation.params.length === 0)
      trial.expect('VER-07', reply, 'an answer that matches the description', reply.status < 300)
  }
})

export const refusals: readonly Check[] = [tokens, scopes, unknown, queries, agreement]
