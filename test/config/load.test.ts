import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { renderFault } from '../../src/sidecar/config/fault.ts'
import { loadConfig, loadSection, resolveConfig } from '../../src/sidecar/config/load.ts'
import { folderWith } from './folder.ts'

const SERVICE = { base_url: 'https://agents.example.com/', token: 'svc_pat_1' }
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

async function load(text: string, env: Record<string, string> = {}, files: Record<string, string> = {}) {
  const folder = await folderWith({ 'sidecar.yaml': text, ...files })
  return { folder, ...(await loadConfig(path.join(folder, 'sidecar.yaml'), env)) }
}

const head = 'service: { base_url: "https://agents.example.com", token: svc_pat_1 }\n'

describe('a configuration', () => {
  test('of an address and a token has every default', async () => {
    const { config, warnings } = await resolveConfig({ service: SERVICE })
    expect(warnings).toEqual([])
    expect(config).toEqual({
      service: {
        baseUrl: 'https://agents.example.com',
        token: 'svc_pat_1',
        tokenExpiresAt: null,
        sessionSlots: 25,
        consoleUrl: 'https://agents.example.com',
        routes: {},
      },
      store: {
        url: { kind: 'sqlite', path: path.resolve('data/sidecar.db'), former: [] },
        retention: 604_800_000,
      },
      stream: { enabled: true, startFrom: 'now' },
      webhooks: {
        enabled: false,
        listen: { host: '0.0.0.0', port: 8480 },
        path: '/webhooks',
        publicUrl: null,
        secrets: [],
        tolerance: 300_000,
      },
      scope: null,
      polling: { enabled: true, interval: 30_000, sweep: 900_000 },
      handlers: [],
      tools: [],
      admin: { listen: { host: '127.0.0.1', port: 8481 }, token: null },
      log: { level: 'info', format: 'auto' },
      secretFiles: [],
    })
  })

  test('as in the commented example is valid, and shows the defaults', async () => {
    const example = fileURLToPath(new URL('../../config/sidecar.yaml', import.meta.url))
    const { settings, warnings } = await loadConfig(example, { SERVICE_TOKEN: 'svc_pat_1' })
    const plain = await resolveConfig({
      service: { base_url: 'https://agents.example.com', token: 'svc_pat_1' },
      handlers: [
        {
          name: 'app',
          url: 'http://127.0.0.1:3000/agent-events',
          events: ['turn.*', 'session.*', 'action.*'],
        },
      ],
      tools: [
        {
          name: 'lookup_order',
          description: 'Finds an order by its id',
          parameters: {
            type: 'object',
            properties: { order_id: { type: 'string' } },
            required: ['order_id'],
          },
          url: 'http://127.0.0.1:3000/tools/lookup_order',
        },
      ],
    })
    expect(warnings).toEqual([])
    expect(settings).toEqual(plain.settings)
  })

  test('as JSON, indented by tabs, is read as well', async () => {
    const { config } = await load(
      JSON.stringify({ service: SERVICE, polling: { interval: '2s' } }, null, '\t'),
    )
    expect(config.polling.interval).toBe(2000)
  })

  test('as an object is taken literally and not modified', async () => {
    const input = Object.freeze({ service: Object.freeze({ ...SERVICE, token: '${NOT_EXPANDED}' }) })
    expect((await resolveConfig(input)).config.service.token).toBe('${NOT_EXPANDED}')
    expect(input).toEqual({ service: { ...SERVICE, token: '${NOT_EXPANDED}' } })
  })

  test('may repeat a part by anchor and merge', async () => {
    const { config } = await load(
      `${head}handlers:\n  - &first { name: a, url: "http://127.0.0.1:1/", timeout: 1s }\n  - { <<: *first, name: b }\n`,
    )
    expect(config.handlers.map(({ name, timeout }) => [name, timeout])).toEqual([
      ['a', 1000],
      ['b', 1000],
    ])
  })

  test.each([
    ['sqlite:data/x.db', { kind: 'sqlite', path: path.resolve('data/x.db'), former: [] }],
    ['sqlite:/var/lib/x.db', { kind: 'sqlite', path: '/var/lib/x.db', former: [] }],
    ['sqlite:///var/lib/x.db', { kind: 'sqlite', path: '/var/lib/x.db', former: [] }],
    ['sqlite::memory:', { kind: 'sqlite', path: ':memory:', former: [] }],
    ['postgres://u@h/d', { kind: 'postgres', url: 'postgres://u@h:5432/d', password: null, tls: null }],
    [
      'postgres://u@%2Frun%2Fa%25b/d',
      { kind: 'postgres', url: 'postgres://u@%2Frun%2Fa%25b:5432/d', password: null, tls: null },
    ],
    [
      'postgresql://u:p%40s@[::1]:6432/d?sslmode=require',
      {
        kind: 'postgres',
        url: 'postgres://u@[::1]:6432/d',
        password: 'p@s',
        tls: { checked: 'nothing', ca: null, cert: null, key: null },
      },
    ],
    [
      'postgres://u@h/d?sslrootcert=system',
      {
        kind: 'postgres',
        url: 'postgres://u@h:5432/d',
        password: null,
        tls: { checked: 'name', ca: null, cert: null, key: null },
      },
    ],
  ])('with the store %s', async (url, expected) => {
    expect((await resolveConfig({ service: SERVICE, store: { url } })).config.store.url).toEqual(expected)
  })

  test.each([
    ['postgres://u@[::1]/d', {}],
    ['postgres:///d', { PGUSER: 'u', PGHOST: '::1' }],
    ['postgres:///d?host=::1', { PGUSER: 'u' }],
  ])('with a database at an IPv6 address, as in %s', async (url, env) => {
    const { config, warnings } = await load(`${head}store: { url: "${url}" }`, env)
    expect(config.store.url).toMatchObject({ url: 'postgres://u@[::1]:5432/d' })
    expect(warnings).toEqual([])
  })

  test('with a database at an IPv6 address with a zone is refused', async () => {
    const env = { PGUSER: 'u', PGHOST: 'fe80::1%eth0' }
    await expect(load(`${head}store: { url: "postgres:///d" }`, env)).rejects.toThrow('has a zone')
  })

  test('with a database takes from the variables what its address leaves out, and the password from a file', async () => {
    const { config, warnings } = await load(
      `${head}store: { url: "postgres://db.example.com/?sslrootcert=ca.pem", password_file: password }`,
      { PGHOST: 'elsewhere', PGPORT: '6000', PGUSER: 'u', PGSSLMODE: 'verify-full', PGPASSWORD: 'unused' },
      { password: 'from-a-file\n', 'ca.pem': 'PEM' },
    )
    expect(config.store.url).toEqual({
      kind: 'postgres',
      url: 'postgres://u@db.example.com:6000/u',
      password: 'from-a-file',
      tls: { checked: 'name', ca: 'PEM', cert: null, key: null },
    })
    expect(warnings).toEqual([])
    expect(config.secretFiles).toMatchObject([{ owner: { of: 'store.password' } }])
  })

  test.each([
    ['postgres:///d', 'names no user'],
    ['postgres://u@a,b/d', 'names several hosts'],
    ['postgres://u@h/d?sslmode=prefer', 'its sslmode must be one of'],
    ['postgres://u@h/d?sslmode=require&sslcert=missing.pem', 'missing.pem does not exist'],
    ['postgres://u@h/d?sslmode=require&sslrootcert=system', 'needs sslmode=verify-full'],
    ['postgres://u@h/d?password=secret', 'must hold no parameter "password"'],
  ])('with the database %s is refused', async (url, fault) => {
    await expect(resolveConfig({ service: SERVICE, store: { url } })).rejects.toThrow(fault)
  })

  test.each([
    ['postgres://u@127.0.0.1/d', []],
    ['postgres://u@%2Fvar%2Frun%2Fpostgresql/d', []],
    ['postgres://u@%2Fvar%2Frun%2Fpostgresql/d?sslrootcert=system', []],
    ['postgres://u@h/d', ['store.url: is without TLS']],
    ['postgres://u@h/d?sslmode=require', ['store.url: has sslmode=require, which does not check']],
    ['postgres://u@127.0.0.1/d?pgbouncer=true', ['store.url: has a parameter without effect: "pgbouncer"']],
  ])('with the database %s warns of what is unsafe', async (url, expected) => {
    const { warnings } = await resolveConfig({ service: SERVICE, store: { url } })
    expect(warnings).toHaveLength(expected.length)
    for (const [index, text] of expected.entries()) expect(warnings.map(renderFault)[index]).toContain(text)
  })

  test.each([
    ['beginning', 'beginning'],
    [812, '812'],
    ['90071992547409931', '90071992547409931'],
  ])('that starts from %s', async (given, expected) => {
    const { config } = await resolveConfig({ service: SERVICE, stream: { start_from: given } })
    expect(config.stream.startFrom).toBe(expected)
  })
})

describe('variables', () => {
  test('are expanded in values, with defaults, and become numbers where numbers belong', async () => {
    const { config } = await load(
      `service: { base_url: "https://\${HOST}/agents", token: "\${TOKEN:-svc_pat_9}" }
handlers:
  - { name: "\${NAME:?a name}", url: "http://127.0.0.1/$\${x}", concurrency: "\${N}", ordered: "\${ORDERED:-false}" }
admin: { token: "\${ADMIN:-}" }
`,
      { HOST: 'h', NAME: 'app', N: '7', TOKEN: '' },
    )
    expect(config.service).toMatchObject({ baseUrl: 'https://h/agents', token: 'svc_pat_9' })
    expect(config.handlers[0]).toMatchObject({ name: 'app', concurrency: 7, ordered: false })
    expect(config.handlers[0]?.target).toMatchObject({ url: 'http://127.0.0.1/${x}' })
    expect(config.admin.token).toBeNull()
  })

  test('bring in no YAML of their own and are not expanded again', async () => {
    const { config } = await load(`${head}tools: [{ name: t, url: "http://127.0.0.1/", error: "\${E}" }]`, {
      E: 'x"\n}], admin: { token: ${HOME} }',
    })
    expect(config.tools[0]?.error).toBe('x"\n}], admin: { token: ${HOME} }')
    expect(config.admin.token).toBeNull()
  })
})

describe('one section', () => {
  const broken = 'service: { token: "${NOT_SET}" }\nhandlers: [{ name: "?", url: gone }]\nwhat: 1\n'

  test('is read whatever the others say or lack, with its own variables, files and overrides', async () => {
    const text = `${broken}admin: { listen: "\${HOST}:1234", token_file: token }\n`
    const folder = await folderWith({ 'sidecar.yaml': text, token: 'from-file\n' })
    const file = path.join(folder, 'sidecar.yaml')
    const env = { HOST: '127.0.0.1', SIDECAR_STORE__URL: 'sqlite:/x/y.db', SIDECAR_HANDLERS__7__URL: 'x' }
    expect(await loadSection(file, env, 'admin')).toEqual({
      listen: { host: '127.0.0.1', port: 1234 },
      token: 'from-file',
    })
    expect(await loadSection(file, env, 'store')).toMatchObject({ url: { kind: 'sqlite', path: '/x/y.db' } })
    await expect(loadConfig(file, env)).rejects.toThrow('NOT_SET')
  })

  test('that is wrong is refused with its place in the file, and so is what is no YAML', async () => {
    const folder = await folderWith({ 'a.yaml': `${broken}admin: { listen: 7 }\n`, 'b.yaml': 'a: [' })
    await expect(loadSection(path.join(folder, 'a.yaml'), {}, 'admin')).rejects.toThrow(
      /^[^\n]*a\.yaml:4:\d+: admin\.listen: [^\n]*$/,
    )
    await expect(loadSection(path.join(folder, 'b.yaml'), {}, 'admin')).rejects.toThrow('b.yaml:')
  })
})

describe('overrides', () => {
  test('set any key, whole lists, entries of lists, and new entries', async () => {
    const { config } = await load(`${head}handlers: [{ name: a, url: "http://127.0.0.1:1/" }]\nstream:\n`, {
      SIDECAR_SERVICE__BASE_URL: 'https://other.example.com',
      SIDECAR_STREAM__ENABLED: 'false',
      SIDECAR_HANDLERS__0__EVENTS: 'turn.*, action.required',
      SIDECAR_HANDLERS__0__BATCH__MAX: '20',
      SIDECAR_HANDLERS__1__NAME: 'b',
      SIDECAR_HANDLERS__1__URL: 'http://127.0.0.1:2/',
      SIDECAR_TOOLS: '[{"name":"t","url":"http://127.0.0.1:3/"}]',
      SIDECAR_TOOLS__0__PARAMETERS: '{"type":"object","properties":{"Id":{}}}',
      SIDECAR_WEBHOOKS__SECRETS__0: 'one',
    })
    expect(config.service.baseUrl).toBe('https://other.example.com')
    expect(config.stream.enabled).toBe(false)
    expect(config.handlers[0]).toMatchObject({
      events: ['turn.*', 'action.required'],
      batch: { max: 20, wait: 0 },
    })
    expect(config.handlers[1]).toMatchObject({ name: 'b', target: { url: 'http://127.0.0.1:2/' } })
    expect(config.tools[0]).toMatchObject({
      name: 't',
      parameters: { type: 'object', properties: { Id: {} } },
    })
    expect(config.webhooks.secrets).toEqual(['one'])
  })

  test('make a whole configuration with an empty file', async () => {
    const { config } = await load('', {
      SIDECAR_SERVICE__BASE_URL: 'https://agents.example.com',
      SIDECAR_SERVICE__TOKEN: 'svc_pat_1',
    })
    expect(config.service.token).toBe('svc_pat_1')
  })

  test('of a secret take the place of its file, and of a variable that is not set', async () => {
    const { config } = await load(
      'service: { base_url: "https://a.b", token_file: /nowhere }\nadmin: { token: "${UNSET}" }',
      { SIDECAR_SERVICE__TOKEN: 'svc_pat_2', SIDECAR_ADMIN__TOKEN: 'adm' },
    )
    expect(config.service.token).toBe('svc_pat_2')
    expect(config.admin.token).toBe('adm')
  })

  test('are distinguished from the variables that Kubernetes sets', async () => {
    const { config } = await load(head, {
      SIDECAR_SERVICE_HOST: '10.0.0.1',
      SIDECAR_SERVICE_PORT: '8481',
      SIDECAR_PORT: 'tcp://10.0.0.1:8481',
      SIDECAR_ADMIN_URL: 'http://127.0.0.1:8481',
    })
    expect(config.service.baseUrl).toBe('https://agents.example.com')
  })

  test('that are wrong are named by their variable', async () => {
    const loading = load(head, {
      SIDECAR_POLING__INTERVAL: '1s',
      SIDECAR_POLLING__SWEEP: 'often',
      SIDECAR_HANDLERS__3__NAME: 'x',
      SIDECAR_HANDLERS__FIRST__NAME: 'x',
      SIDECAR_ADMIN____PROTO____X: 'x',
      SIDECAR_SERVICE__ROUTES__MESSAGE_BODY__TEXT: 'x',
    })
    await expect(loading).rejects.toMatchObject({
      faults: [
        { file: 'SIDECAR_POLLING__SWEEP', line: null, column: null, path: 'polling.sweep' },
        { file: 'SIDECAR_ADMIN____PROTO____X', message: 'there is no key "" in admin' },
        {
          file: 'SIDECAR_HANDLERS__3__NAME',
          message: 'handlers ends before this entry: the next one is number 0',
        },
        { file: 'SIDECAR_HANDLERS__FIRST__NAME', message: expect.stringContaining('is a list') },
        { file: 'SIDECAR_POLING__INTERVAL', message: 'there is no key "poling", did you mean "polling"?' },
        { message: 'service.routes.message_body has no keys to set one by one: give it whole, as JSON' },
      ],
    })
  })
})

describe('secrets', () => {
  test('come from values and files, the newest first, and say where they came from', async () => {
    const other = 'whsec_b3RoZXI='
    const { config, files, folder } = await load(
      `service: { base_url: "https://a.b", token_file: token }
handlers: [{ name: a, url: "http://127.0.0.1/", secret: ${other}, secrets_file: old }]
webhooks: { secrets_file: hooks }
`,
      {},
      { token: 'svc_pat_7\n', old: `${SECRET}\r\n\n${other}\n`, hooks: ' one \ntwo' },
    )
    expect(config.service.token).toBe('svc_pat_7')
    expect(config.handlers[0]?.target).toMatchObject({ secrets: [other, SECRET, other] })
    expect(config.webhooks.secrets).toEqual(['one', 'two'])
    expect(files.map((file) => path.relative(folder, file)).sort()).toEqual([
      'hooks',
      'old',
      'sidecar.yaml',
      'token',
    ])
  })

  test.each([
    ['is empty', 'token', ' \n'],
    ['must hold one line', 'token', 'a\nb'],
    ['must be one word', 'token', 'a b'],
  ])('in a file that %s are refused without being shown', async (message, name, content) => {
    const loading = load('service: { base_url: "https://a.b", token_file: token }', {}, { [name]: content })
    await expect(loading).rejects.toThrow(message)
    await expect(loading).rejects.not.toThrow('a b')
  })
})

describe('warnings', () => {
  test('name event types that are not known, with the nearest one and the place', async () => {
    const { warnings } = await resolveConfig({
      service: SERVICE,
      handlers: [
        {
          name: 'app',
          url: 'http://127.0.0.1:3000/',
          events: ['turn.setled', 'turn.*', 'foo.*', 'agent.text', '*', 'sesion.*', 'stream.turn.ended'],
        },
      ],
    })
    const rest = 'nothing matches it unless the service sends it.'
    expect(warnings.map(renderFault)).toEqual([
      `handlers[0].events[0]: "turn.setled" is not a known event type: ${rest} Did you mean "turn.settled"?`,
      `handlers[0].events[2]: "foo.*" is not a prefix of a known event type: ${rest}`,
      `handlers[0].events[5]: "sesion.*" is not a prefix of a known event type: ${rest} Did you mean "session.*"?`,
    ])
  })

  test('report allowed but unsafe settings, with their position', async () => {
    const { warnings } = await load(
      `service: { base_url: "http://agents.example.com", token: svc_pat_1, token_expires_at: 2020-01-31 }
handlers: [{ name: a, url: "https://app.example.com/" }, { name: b, url: "http://[::1]:1/" }]
tools: [{ name: t, url: "https://app.example.com/", secret: ${SECRET} }]
admin: { listen: "0.0.0.0:8481" }
`,
    )
    expect(warnings.map(({ line, path: at }) => `${line} ${at}`)).toEqual([
      '1 service.base_url',
      '2 handlers[0].url',
      '4 admin.listen',
    ])
    const expired = await resolveConfig(
      { service: { ...SERVICE, token_expires_at: '2020-01-31' } },
      { now: Date.parse('2026-01-01') },
    )
    expect(expired.warnings).toMatchObject([{ path: 'service.token_expires_at' }])
  })

  test.each([
    ['the value', 'secret: c2hvcnQ', {}],
    ['its file', 'secret_file: key', { key: 'c2hvcnQ\n' }],
  ])('refuse a secret without its prefix, in %s', async (_, setting, files) => {
    const text = `service: { base_url: "https://a.b", token: svc_pat_1 }\nhandlers: [{ name: a, url: "http://[::1]:1/", ${setting} }]`
    await expect(load(text, {}, files)).rejects.toThrow(
      'must be a Standard Webhooks secret: "whsec_" followed by base64',
    )
  })

  test('name a handler whose secret can be guessed', async () => {
    const secretOf = (bytes: number): string => `whsec_${Buffer.alloc(bytes, 7).toString('base64')}`
    const { warnings } = await load(`service: { base_url: "https://a.b", token: svc_pat_1 }
handlers:
  - { name: a, url: "http://[::1]:1/", secret: ${secretOf(23)} }
  - { name: b, url: "http://[::1]:1/", secret: ${secretOf(24)} }`)
    expect(warnings).toMatchObject([{ line: 3, path: 'handlers[0].secret' }])
    expect(warnings.map(renderFault).join()).toContain('has a secret of fewer than 24 bytes')
  })

  test.each([
    ['the value', 'token', 'admin: { token: fifteen-charact }', {}],
    ['its file', 'token_file', 'admin: { token_file: short }', { short: 'fifteen-charact\n' }],
  ])('name an admin token that can be guessed, in %s, without showing it', async (_, key, section, files) => {
    const base = 'service: { base_url: "https://a.b", token: svc_pat_1 }\n'
    const { config, warnings } = await load(base + section, {}, files)
    expect(config.admin.token).toBe('fifteen-charact')
    expect(warnings).toMatchObject([{ line: 2, path: `admin.${key}` }])
    expect(warnings.map(renderFault).join()).toContain('has fewer than 16 characters')
    expect(warnings.map(renderFault).join()).not.toContain('fifteen-charact')
    const enough = await load(`${base}admin: { token: sixteen-characte }`)
    expect(enough.warnings).toEqual([])
  })
})
