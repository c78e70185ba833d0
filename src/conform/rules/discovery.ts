import { isObject } from '../../std/json.ts'
import { reading, type Check } from '../check.ts'
import { ENDPOINTS, QUERIES } from '../interface.ts'
import { array, boolean, is, strings } from '../kind.ts'
import { Stuck } from '../stuck.ts'

const health = reading(
  'health answers',
  'GEN-04 HLT-01..07 HLT-16 AUT-01 AUT-03 AUT-30 VER-01',
  async (trial) => {
    const { health: reply } = trial.ground
    trial.status('HLT-16 GEN-04 VER-01 AUT-01 AUT-30', reply, 200)
    trial.is('HLT-01', reply, 'object', is('health'))
    trial.is('HLT-02', reply, 'status', is('ok'))
    trial.is('HLT-03', reply, 'version', is('v1'))
    trial.is('HLT-04', reply, 'scopes', strings)
    if (!trial.is('HLT-05', reply, 'usable', boolean)) return
    trial.is('HLT-06', reply, 'missing_scopes', array)
    if (isObject(reply.json) && reply.json['usable'] === true)
      trial.is('HLT-07', reply, 'missing_scopes', is([]))
    const { token } = trial.deployment
    trial.expect(
      'AUT-03',
      null,
      'a token that begins with svc_pat_',
      token.startsWith('svc_pat_'),
      'another beginning',
    )
  },
  [],
)

const service = reading(
  'GET /v1 points to the description',
  'HLT-08',
  async (trial) => {
    const reply = await trial.get('/v1')
    if (reply.status === 403) throw new Stuck('the token may only read health')
    const link = reply.headers['link'] ?? 'no Link header'
    const points = /<\/v1\/openapi\.json>\s*;\s*rel="?service-desc"?/.test(link)
    trial.expect(
      'HLT-08',
      reply,
      'Link: </v1/openapi.json>; rel=service-desc',
      reply.status === 200 && points,
      link,
    )
  },
  [],
)

const document = reading(
  'the description is complete',
  'GEN-05 HLT-09..14 VER-10..13 AUT-31 LIM-20 GEN-28 GEN-29',
  async (trial) => {
    const { description, described } = trial.ground
    const { operations } = description
    trial.expect('HLT-09', described, 'an OpenAPI document', description.operations.length > 0)
    trial.status('HLT-10', described, 200)
    if (operations.length === 0) throw new Stuck('there is no readable description')
    const names = (list: readonly { method: string; path: string }[]): string =>
      list.map(({ method, path }) => `${method} ${path}`).join(', ')
    const outside = operations.filter(({ path }) => !/^\/v1(\/|$)/.test(path))
    trial.expect('GEN-05', described, 'every path under /v1', outside.length === 0, names(outside))
    const missing = ENDPOINTS.filter((endpoint) => description.find(endpoint) === null)
    trial.expect(
      'HLT-11',
      described,
      'every endpoint of the interface',
      missing.length === 0,
      `missing: ${missing.join(', ')}`,
    )
    const bare = Object.entries(QUERIES).flatMap(([endpoint, query]) => {
      const operation = description.find(endpoint)
      return operation === null
        ? []
        : query.filter((name) => !operation.query.includes(name)).map((name) => `${endpoint} ${name}`)
    })
    trial.expect(
      'HLT-12',
      described,
      'every query parameter of the interface',
      bare.length === 0,
      `missing: ${bare.join(', ')}`,
    )
    const shapeless = operations.filter(
      (one) => description.mediaTypes(one).includes('application/json') && description.success(one) === null,
    )
    trial.expect(
      'HLT-13',
      described,
      'a schema of every JSON answer',
      shapeless.length === 0,
      `without: ${names(shapeless)}`,
    )
    const open = ['/v1', '/v1/openapi.json', '/v1/health']
    const unscoped = operations.filter(
      (one) => !open.includes(one.path) && description.scopes(one).length === 0,
    )
    trial.expect(
      'HLT-14',
      described,
      'a scope with every operation',
      unscoped.length === 0,
      `without: ${names(unscoped)}`,
    )
    media(trial, 'VER-10', 'GET /v1/events', 'text/event-stream')
    media(trial, 'VER-11', 'GET /v1/sessions/{}/artifacts/archive', 'application/x-tar')
    media(trial, 'VER-12', 'GET /v1/sessions/{}/artifacts/{}/content', 'application/octet-stream')
    const template = description.find('GET /v1/environment-templates/{}')
    trial.value('VER-13', described, 'deprecated of the template read', template?.raw['deprecated'], is(true))
    const scoped = operations.filter((one) => description.scopes(one).length > 0)
    trial.note(
      'AUT-31',
      scoped.map((one) => `${one.method} ${one.path}: ${description.scopes(one).join('+')}`).join('; '),
    )
    const header = trial.places.idempotency
    const without = operations.filter(
      ({ method, path, headers }) =>
        method === 'POST' &&
        /^\/v1\/(sessions|webhooks|model-credentials)$/.test(path) &&
        !headers.some(({ name }) => name === header),
    )
    trial.expect(
      'GEN-28',
      described,
      'an idempotency header with every creation',
      header !== null && without.length === 0,
      `without: ${names(without)}`,
    )
    const { message, answer } = trial.places
    const acting = [message, answer].filter((one) => one !== null)
    const silent = acting.filter(({ headers }) => !headers.some(({ name }) => name === header))
    trial.expect(
      'GEN-29',
      described,
      'an idempotency header with messages and answers',
      acting.length === 2 && silent.length === 0,
      `without: ${names(silent)}`,
    )
    const schema = description.find('POST /v1/sessions')?.headers.find(({ name }) => name === header)?.[
      'schema'
    ]
    const longest = isObject(schema) ? schema['maxLength'] : undefined
    trial.value('LIM-20', described, 'the longest idempotency value', longest, is(255))
  },
  [],
)

function media(trial: Parameters<Check['run']>[0], id: string, endpoint: string, type: string): void {
  const { description, described } = trial.ground
  const operation = description.find(endpoint)
  const types = operation === null ? [] : description.mediaTypes(operation)
  trial.expect(
    id,
    described,
    `${endpoint} as ${type}`,
    types.includes(type),
    types.join(', ') || 'no media type',
  )
}

export const discovery: readonly Check[] = [health, service, document]
