import { isObject } from '../../core/json.ts'
import { reading, type Check } from '../check.ts'
import type { Description } from '../description.ts'
import { ENDPOINTS, QUERIES, STREAM_EVENTS, WEBHOOK_EVENTS } from '../interface.ts'
import { array, boolean, is, kind, object, strings, textAt } from '../kind.ts'
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
  'the description is there and whole',
  'GEN-05 HLT-09..14 VER-10..13 AUT-31 LIM-20 GEN-28 GEN-29',
  async (trial) => {
    const { description, described } = trial.ground
    const { operations } = description
    trial.expect('HLT-09', described, 'an OpenAPI document', description.operations.length > 0)
    trial.status('HLT-10', described, 200)
    if (operations.length === 0) throw new Stuck('there is no description that can be read')
    const names = (list: readonly { method: string; path: string }[]): string =>
      list.map(({ method, path }) => `${method} ${path}`).join(', ')
    const outside = operations.filter(({ path }) => !/^\/v1(\/|$)/.test(path))
    trial.expect('GEN-05', described, 'every path under /v1', outside.length === 0, names(outside))
    const missing = ENDPOINTS.filter((endpoint) => findEndpoint(description, endpoint) === null)
    trial.expect(
      'HLT-11',
      described,
      'every endpoint of the interface',
      missing.length === 0,
      `missing: ${missing.join(', ')}`,
    )
    const bare = Object.entries(QUERIES).flatMap(([endpoint, query]) => {
      const operation = findEndpoint(description, endpoint)
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
    const template = findEndpoint(description, 'GET /v1/environment-templates/{}')
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
      'an idempotency header with everything that creates',
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
    const schema = findEndpoint(description, 'POST /v1/sessions')?.headers.find(
      ({ name }) => name === header,
    )?.['schema']
    const longest = isObject(schema) ? schema['maxLength'] : undefined
    trial.value('LIM-20', described, 'the longest idempotency value', longest, is(255))
  },
  [],
)

function findEndpoint(description: Description, endpoint: string) {
  const [method = '', path = ''] = endpoint.split(' ')
  return (
    description.operations.find(
      (one) =>
        one.method === method &&
        one.path.replaceAll(/\{[^}]*\}/g, '{}') === path.replaceAll(/\{[^}]*\}/g, '{}'),
    ) ?? null
  )
}

function media(trial: Parameters<Check['run']>[0], id: string, endpoint: string, type: string): void {
  const { description, described } = trial.ground
  const operation = findEndpoint(description, endpoint)
  const types = operation === null ? [] : description.mediaTypes(operation)
  trial.expect(
    id,
    described,
    `${endpoint} as ${type}`,
    types.includes(type),
    types.join(', ') || 'no media type',
  )
}

const scopes = reading(
  'the description asks for the scopes of the interface',
  'AUT-05..09 AUT-32..34 AUT-36..38 EVT-06 EVT-07 GEN-14 AUT-16 AUT-18..20 AUT-22 AUT-23',
  async (trial) => {
    const { description, described, health: reply } = trial.ground
    const all = new Set(description.operations.flatMap((one) => description.scopes(one)))
    const mentioned = reply.text + described.text
    const named = [
      ['AUT-05', 'sessions:read'],
      ['AUT-06', 'sessions:write'],
      ['AUT-07', 'tools:respond'],
      ['AUT-08', 'artifacts:read'],
      ['AUT-09', 'credentials:write'],
    ] as const
    for (const [id, scope] of named)
      trial.expect(id, described, `the scope ${scope}`, mentioned.includes(`"${scope}"`), [...all].join(', '))
    const { places } = trial
    const asks = (ids: string, operation: { method: string; path: string } | null, scope: string): void => {
      const found = description.operations.find((one) => one === operation)
      if (found === undefined) return trial.leave(ids, 'the description does not have this operation')
      const wanted = description.scopes(found)
      trial.expect(
        ids,
        described,
        `${found.method} ${found.path} needs ${scope}`,
        wanted.includes(scope),
        wanted.join(', '),
      )
    }
    const shown = (endpoint: string) => findEndpoint(description, endpoint)
    asks('AUT-32', shown('GET /v1/sessions/{}/files'), 'sessions:read')
    asks('AUT-33', shown('GET /v1/sessions/{}/turns'), 'sessions:read')
    asks('AUT-34', shown('GET /v1/sessions/{}/items'), 'sessions:read')
    asks('AUT-36', places.answer, 'tools:respond')
    asks('AUT-37', shown('GET /v1/sessions/{}/artifacts/archive'), 'artifacts:read')
    asks('AUT-38 AUT-16 GEN-14', shown('POST /v1/model-credentials'), 'credentials:write')
    asks('EVT-06', shown('GET /v1/events'), 'sessions:read')
    asks('EVT-07', places.sessionStream, 'sessions:read')
    asks('AUT-18', places.message, 'sessions:write')
    asks('AUT-19', places.cancel, 'sessions:write')
    asks('AUT-20', shown('DELETE /v1/sessions/{}'), 'sessions:write')
    asks('AUT-23', places.deleteArtifact, 'sessions:write')
    const changing = description.operations.filter(
      (one) => one.method !== 'GET' && description.scopes(one).every((scope) => /:read$/.test(scope)),
    )
    const loose = changing.map(({ method, path }) => `${method} ${path}`).join(', ')
    trial.expect('AUT-22', described, 'no change with reading scopes alone', changing.length === 0, loose)
  },
  [],
)

const PAYLOADS: readonly (readonly [string, string, string])[] = [
  ['EVT-67', 'agent.text', 'delta'],
  ['EVT-69', 'agent.message', 'text'],
  ['EVT-70', 'agent.tool_call', 'toolName'],
  ['EVT-71', 'agent.tool_call', 'args'],
  ['EVT-72', 'tool.required', 'name'],
  ['EVT-73', 'tool.required', 'arguments'],
  ['EVT-74', 'mcp.unavailable', 'server'],
  ['EVT-75', 'mcp.unavailable', 'reason'],
  ['EVT-76', 'approval.resolved', 'approved'],
  ['EVT-77', 'approval.resolved', 'toolCallId'],
  ['EVT-78', 'approval.resolved', 'name'],
  ['EVT-79', 'approval.resolved', 'code'],
]

const examples = reading(
  'the description has an example of every event',
  'HLT-15 EVT-38..64 EVT-67 EVT-69..79 EVT-83 WHS-16..23',
  async (trial) => {
    const { description, described } = trial.ground
    if (description.operations.length === 0) throw new Stuck('there is no description that can be read')
    const found = new Map<string, unknown>()
    for (const example of examplesIn(description.document)) {
      const name = textAt(example, 'type')
      if (name !== '' && !found.has(name)) found.set(name, example)
    }
    const missing = STREAM_EVENTS.map(([name]) => name).filter((name) => !found.has(name))
    trial.expect(
      'HLT-15',
      described,
      'an example of every event',
      missing.length === 0,
      `missing: ${missing.join(', ')}`,
    )
    for (const [name, id] of STREAM_EVENTS)
      trial.expect(id, described, `an example of ${name}`, found.has(name), 'none')
    for (const [id, name, field] of PAYLOADS) {
      const example = found.get(name)
      if (example !== undefined)
        trial.value(id, described, `payload of ${name}`, payloadOf(example), having(field))
    }
    const others = STREAM_EVENTS.filter(([name]) => !PAYLOADS.some(([, known]) => known === name))
    trial.note(
      'EVT-83',
      others
        .map(([name]) => `${name}: ${Object.keys(payloadOf(found.get(name)) ?? {}).join('+') || 'nothing'}`)
        .join('; '),
    )
    const told = JSON.stringify(description.document)
    for (const [name, id] of WEBHOOK_EVENTS)
      trial.expect(id, described, `the webhook event ${name}`, told.includes(`"${name}"`), 'not described')
  },
  [],
)

function payloadOf(example: unknown): object | undefined {
  const payload = isObject(example) ? example['payload'] : undefined
  return isObject(payload) ? payload : undefined
}

function having(field: string) {
  return kind(
    `an object with ${field}`,
    (value) => object.fits(value) && isObject(value) && value[field] !== undefined,
  )
}

/** Values looked at while searching a description. */
const VALUES_MAX = 200_000

/** Every value of an `example` or of `examples`, wherever in the description. */
function examplesIn(document: unknown): unknown[] {
  const found: unknown[] = []
  const waiting: unknown[] = [document]
  for (let looked = 0; waiting.length > 0 && looked < VALUES_MAX; looked++) {
    const value = waiting.pop()
    if (Array.isArray(value)) waiting.push(...(value as unknown[]))
    if (!isObject(value)) continue
    for (const [key, inner] of Object.entries(value)) {
      if (key === 'example') found.push(inner)
      if (key === 'examples' && isObject(inner))
        for (const example of Object.values(inner))
          found.push(isObject(example) && 'value' in example ? example['value'] : example)
      if (key === 'examples' && Array.isArray(inner)) found.push(...(inner as unknown[]))
      waiting.push(inner)
    }
  }
  return found
}

const open = reading(
  'what the interface leaves open, as described',
  'GEN-32 ACT-17 INP-04 TRN-27 TRN-28 EVT-05 ART-10 ART-11 AGT-33 AGT-34 MOD-28 FIL-33 LIM-41 SES-51 SES-115..117 STA-22 STA-32 TOO-48 TOO-49 ITM-08 ACT-20 TRN-21 SES-92 SES-128 TOO-53 PRE-09 PRE-12 PRE-13 FIL-42 MOD-18 ART-05 INP-05 EVT-36',
  async (trial) => {
    const { description, places } = trial.ground
    const { schemas } = description
    const place = (id: string, operation: { method: string; path: string } | null): void =>
      operation === null
        ? trial.leave(id, 'the description does not give it away')
        : trial.note(id, `${operation.method} ${operation.path}`)
    place('ACT-17', places.answer)
    place('INP-04', places.message)
    place('TRN-27', places.turn)
    place('TRN-28', places.cancel)
    place('EVT-05', places.sessionStream)
    place('ART-10', places.artifacts)
    place('ART-11', places.deleteArtifact)
    place('AGT-33', places.saveAgent)
    place('AGT-34', description.find('GET', '/v1/agents'))
    place('MOD-28', places.disconnect)
    const word = (id: string, name: string | null): void =>
      name === null ? trial.leave(id, 'the description does not give it away') : trial.note(id, name)
    word('GEN-32', places.idempotency)
    word('FIL-33', places.snapshot)
    word('LIM-41', places.budget === null ? null : `${places.budget.left}, ${places.budget.bucket}`)
    const create = schemas.properties(description.find('POST', '/v1/sessions')?.body)
    const agent = schemas.properties(create['agent'])
    const environment = schemas.properties(create['environment'])
    const fields = (schema: unknown): string => Object.keys(schemas.properties(schema)).join(', ')
    const listed = (words: readonly string[], ...stated: string[]): string | null =>
      words.filter((one) => !stated.includes(one)).join(', ') || null
    word('SES-51', listed(schemas.words(agent['approval_mode']), 'read_only'))
    word('SES-115', fields(create['input']) || null)
    word('SES-116', fields(environment['repo']) || null)
    word('SES-117', schemas.typesOf(environment['profiles']).join(' or ') || null)
    const text = schemas.properties(create['text'])
    word('TOO-48', listed(schemas.words(text['verbosity']), 'low'))
    word('TOO-49', fields(text['format']) || listed(schemas.words(text['format'])))
    const answerOf = (endpoint: string) => {
      const operation = findEndpoint(description, endpoint)
      return operation === null ? null : description.success(operation)
    }
    const turn = entriesOf(description, 'GET /v1/sessions/{}/turns')
    word('STA-22', listed(schemas.words(turn['status']), 'working', 'completed', 'failed'))
    word('TRN-21', fields(turn['error']) || null)
    const item = entriesOf(description, 'GET /v1/sessions/{}/items')
    word('ITM-08', listed(schemas.words(item['type']), 'message', 'tool_call', 'mcp_unavailable'))
    const session = schemas.properties(answerOf('GET /v1/sessions/{}'))
    const state = schemas.properties(session['environment'])['state']
    word('STA-32', listed(schemas.words(state), 'running', 'unknown'))
    const outcome =
      places.answer === null ? undefined : schemas.properties(description.success(places.answer))['outcome']
    word('ACT-20', listed(schemas.words(outcome), 'not_delivered'))
    const gone = findEndpoint(description, 'DELETE /v1/sessions/{}')
    word('SES-92', gone === null ? null : fields(description.success(gone)) || 'no body')
    word(
      'SES-128',
      listed(
        Object.keys(schemas.properties(answerOf('POST /v1/sessions/{}/fork'))),
        'forked_from',
        'workspace_copied',
      ),
    )
    word('TOO-53', fields(answerOf('PUT /v1/sessions/{}/tools')) || null)
    word('PRE-09', fields(findEndpoint(description, 'POST /v1/sessions/{}/preview')?.body) || null)
    word('PRE-12', fields(answerOf('POST /v1/sessions/{}/preview')) || null)
    word('PRE-13', fields(answerOf('DELETE /v1/sessions/{}/preview')) || null)
    const files = schemas.properties(findEndpoint(description, 'POST /v1/sessions/{}/files')?.body)['files']
    const entry = schemas.properties(schemas.resolve(files)['items'])
    word(
      'FIL-42',
      listed(schemas.words(entry['type']), 'inline') ?? (entry['type'] === undefined ? null : 'none'),
    )
    word(
      'MOD-18',
      listed(
        Object.keys(entriesOf(description, 'GET /v1/model-connectors')),
        'id',
        'default_model',
        'key_prefix',
      ),
    )
    const artifact =
      places.artifacts === null
        ? {}
        : schemas.properties(
            schemas.resolve(schemas.properties(description.success(places.artifacts))['data'])['items'],
          )
    word('ART-05', listed(Object.keys(artifact), 'id'))
    const said = places.message === null ? {} : schemas.properties(description.success(places.message))
    word('INP-05', listed(Object.keys(said), 'queued', 'position', 'queue_position'))
    const known = new Set(STREAM_EVENTS.map(([name]) => name))
    const stop = examplesIn(description.document).find(
      (example) =>
        isObject(example) &&
        JSON.stringify(example).includes('"from_seq"') &&
        !known.has(textAt(example, 'type')),
    )
    word('EVT-36', textAt(stop, 'type') || null)
  },
  [],
)

/** The properties of an entry of a list. */
function entriesOf(description: Description, endpoint: string): Record<string, unknown> {
  const operation = findEndpoint(description, endpoint)
  if (operation === null) return {}
  const { schemas } = description
  const list = schemas.properties(description.success(operation))
  return schemas.properties(schemas.resolve(list['data'])['items'])
}

export const discovery: readonly Check[] = [health, service, document, scopes, examples, open]
