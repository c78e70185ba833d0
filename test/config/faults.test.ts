import { chmod } from 'node:fs/promises'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { ConfigError, type Fault } from '../../src/sidecar/config/fault.ts'
import { loadConfig } from '../../src/sidecar/config/load.ts'
import { folderWith } from './folder.ts'

const SERVICE = 'service: { base_url: "https://agents.example.com", token: svc_pat_1 }\n'

async function faultsOf(text: string, env: Record<string, string> = {}): Promise<Fault[]> {
  const folder = await folderWith({ 'sidecar.yaml': text })
  const thrown: unknown = await loadConfig(path.join(folder, 'sidecar.yaml'), env).then(
    () => null,
    (error: unknown) => error,
  )
  if (!(thrown instanceof ConfigError)) throw new Error('the configuration was accepted', { cause: thrown })
  expect(thrown.exitCode).toBe(2)
  expect(thrown.message).not.toContain('    at ')
  return [...thrown.faults]
}

/** `line:column path: message`, the file left out. */
function summary(fault: Fault): string {
  return `${fault.line ?? '-'}:${fault.column ?? '-'} ${fault.path}: ${fault.message}`
}

interface Case {
  what: string
  text: string
  env?: Record<string, string>
  says: string[]
}

const HANDLER = `${SERVICE}handlers:\n  - name: app\n    url: http://127.0.0.1:1/\n`
const TOOL = `${SERVICE}tools:\n  - name: look\n    url: http://127.0.0.1:1/\n`

const cases: Case[] = [
  {
    what: 'a mistyped key, with the nearest known one',
    text: `${HANDLER}    tiemout: 5s\n`,
    says: ['5:5 handlers[0].tiemout: unknown key, did you mean "timeout"?'],
  },
  {
    what: 'a key in another spelling',
    text: 'service: { baseUrl: "https://a.b", base-url: "https://a.b", token: x }',
    says: [
      '1:1 service.base_url: is required',
      '1:12 service.baseUrl: unknown key, did you mean "base_url"?',
      '1:36 service.base-url: unknown key, did you mean "base_url"?',
    ],
  },
  {
    what: 'a key that is near none, with those that are known',
    text: `${SERVICE}polling: { whatever: 1 }`,
    says: ['2:12 polling.whatever: unknown key; known here: enabled, interval, sweep'],
  },
  {
    what: 'a service without address and token',
    text: 'store: {}',
    says: [
      '1:1 service: is required',
      '1:1 service.token: is required: the access token, or token_file with its path',
    ],
  },
  {
    what: 'a variable that is not set, with its name and its message',
    text: 'service:\n  base_url: ${URL:?where the service is}\n  token: ${TOKEN}',
    env: { URL: '' },
    says: [
      '2:13 service.base_url: the environment variable URL is not set: where the service is',
      '3:10 service.token: the environment variable TOKEN is not set',
    ],
  },
  {
    what: 'a variable that is written wrongly',
    text: `${SERVICE}admin: { token: "\${}" }`,
    says: [
      '2:17 admin.token: a variable is written ${NAME}, ${NAME:-default} or ${NAME:?message}, not nested; a literal "${" is "$${"',
    ],
  },
  {
    what: 'a variable that a prototype would answer',
    text: `${SERVICE}admin: { token: "\${constructor}" }`,
    says: ['2:17 admin.token: the environment variable constructor is not set'],
  },
  {
    what: 'a duration without a unit',
    text: `${HANDLER}    timeout: 15\n    retry: { max: 1 hour, base: 0s }`,
    says: [
      '5:14 handlers[0].timeout: must be a duration such as 250ms, 30s, 5m, 9h or 7d, not 15',
      '6:19 handlers[0].retry.max: must be a duration such as 250ms, 30s, 5m, 9h or 7d, not "1 hour"',
      '6:33 handlers[0].retry.base: must be between 1ms and 1h, not "0s"',
    ],
  },
  {
    what: 'YAML 1.1 truth values',
    text: `${SERVICE}webhooks:\n  enabled: on\n`,
    says: ['3:12 webhooks.enabled: must be true or false, not "on"'],
  },
  {
    what: 'words that are none of the known ones',
    text: `${HANDLER}    format: xml\nlog: { level: loud }`,
    says: [
      '5:13 handlers[0].format: must be standard or cloudevents, not "xml"',
      '6:15 log.level: must be debug, info, warn, error or silent, not "loud"',
    ],
  },
  {
    what: 'a start that is neither now nor beginning nor a seq',
    text: `${SERVICE}stream: { start_from: later }`,
    says: [
      '2:23 stream.start_from: must be now, beginning, or a seq (one of more than 15 digits in quotes), not "later"',
    ],
  },
  {
    what: 'a seq that a number cannot hold',
    text: `${SERVICE}stream: { start_from: 9007199254740993 }`,
    says: [
      '2:23 stream.start_from: must be now, beginning, or a seq (one of more than 15 digits in quotes), not 9007199254740992',
    ],
  },
  {
    what: 'a handler with neither address nor module, and one with both',
    text: `${SERVICE}handlers:\n  - name: a\n  - name: b\n    url: http://127.0.0.1/\n    module: ./b.ts\n`,
    says: ['3:5 handlers[0]: needs a url or a module', '6:13 handlers[1].module: give either url or module'],
  },
  {
    what: 'a handler address that is not HTTP',
    text: `${SERVICE}handlers:\n  - { name: a, url: "file:///etc/passwd" }\n  - { name: b, url: "javascript:alert(1)" }\n  - { name: c, url: nowhere }`,
    says: [
      '3:21 handlers[0].url: must be an http or https address, not "file:"',
      '4:21 handlers[1].url: must be an http or https address, not "javascript:"',
      '5:21 handlers[2].url: must be an http or https address',
    ],
  },
  {
    what: 'a name that is used twice',
    text: `${HANDLER}  - name: app\n    url: http://127.0.0.1:2/`,
    says: ['5:11 handlers[1].name: "app" is the name of handlers[0] already'],
  },
  {
    what: 'a name with letters that a metric or a path cannot hold',
    text: `${SERVICE}tools: [{ name: "a/b", url: "http://127.0.0.1/" }]`,
    says: ['2:17 tools[0].name: must be 1 to 64 letters, digits, "_" and "-", or "*", not "a/b"'],
  },
  {
    what: 'parameters that are no JSON Schema',
    text: `${TOOL}    parameters: { type: objekt }`,
    says: ['5:5 tools[0].parameters: is not a JSON Schema: type must be equal to one of the allowed values'],
  },
  {
    what: 'a variable as the default of another',
    text: `${SERVICE}admin: { token: "\${A:-\${B}}" }`,
    says: [
      '2:17 admin.token: a variable is written ${NAME}, ${NAME:-default} or ${NAME:?message}, not nested; a literal "${" is "$${"',
    ],
  },
  {
    what: 'a webhook path that no request line can hold',
    text: `${SERVICE}webhooks: { path: /wébhooks }`,
    says: [
      '2:19 webhooks.path: must be a path that begins with "/", of characters that need no escape in an address, not "/wébhooks"',
    ],
  },
  {
    what: 'all channels turned off',
    text: `${SERVICE}stream: { enabled: false }\npolling: { enabled: false }`,
    says: ['2:20 stream.enabled: at least one of stream, webhooks and polling must be enabled'],
  },
  {
    what: 'webhooks without a subscription',
    text: `${SERVICE}webhooks: { enabled: true }`,
    says: [
      '2:22 webhooks.enabled: needs public_url (the sidecar then creates the subscription) or secrets (of a subscription that you created)',
    ],
  },
  {
    what: 'a public address that the service would refuse',
    text: `${SERVICE}webhooks: { enabled: true, public_url: "http://app.example.com/webhooks" }`,
    says: ['2:40 webhooks.public_url: must be an https address: the service accepts no other'],
  },
  {
    what: 'a store of another kind',
    text: `${SERVICE}store: { url: "mysql://h/d" }`,
    says: ['2:15 store.url: must be sqlite:PATH or postgres://user@host/db'],
  },
  {
    what: 'a place to listen that is none',
    text: `${SERVICE}admin: { listen: "8481" }\nwebhooks: { listen: "0.0.0.0:99999" }`,
    says: [
      '2:18 admin.listen: must be HOST:PORT, such as 127.0.0.1:8481 or [::1]:8481',
      '3:21 webhooks.listen: must be HOST:PORT, such as 127.0.0.1:8481 or [::1]:8481',
    ],
  },
  {
    what: 'a secret given twice over',
    text: 'service: { base_url: "https://a.b", token: x, token_file: y }',
    says: ['1:59 service.token_file: give either token or token_file'],
  },
  {
    what: 'files of secrets that are not there',
    text: 'service: { base_url: "https://a.b", token_file: /nowhere/token }',
    says: ['1:49 service.token_file: /nowhere/token does not exist'],
  },
  {
    what: 'a module that is not there',
    text: `${SERVICE}handlers:\n  - { name: a, module: /nowhere/handlers.ts }`,
    says: ['3:24 handlers[0].module: /nowhere/handlers.ts does not exist'],
  },
  {
    what: 'a list where a map belongs, and the other way round',
    text: 'service: []\nhandlers: { name: a }\ntools: 3',
    says: [
      '1:1 service: must be a map of keys',
      '1:1 service.token: is required: the access token, or token_file with its path',
      '2:1 handlers: must be a list',
      '3:8 tools: must be a list, not 3',
    ],
  },
  { what: 'an empty file', text: '', says: ['1:1 : the file is empty'] },
  { what: 'a file of comments', text: '# nothing\n', says: ['1:1 : the file is empty'] },
  {
    what: 'a list as the whole file',
    text: '- a',
    says: ['1:1 : must be a map of sections: service, store, handlers and so on'],
  },
  { what: 'a key given twice', text: `${SERVICE}${SERVICE}`, says: ['2:1 : this key is given twice'] },
  {
    what: 'a second document',
    text: `${SERVICE}---\nstore: {}\n`,
    says: ['2:1 : a second document begins here, and only one is expected'],
  },
  {
    what: 'text that is no YAML',
    text: 'service: { base_url: "x',
    says: [
      '1:24 : not valid YAML: Missing closing "quote',
      '1:24 : not valid YAML: Flow map in block collection',
    ],
  },
  {
    what: 'a tag that would make code',
    text: 'service: !!js/function "x"',
    says: ['1:10 : not valid YAML: Unresolved tag: tag:yaml.org,2002:js/function'],
  },
  {
    what: 'an alias without its anchor',
    text: 'service: *there',
    says: ['1:10 : there is no anchor &there before this alias'],
  },
  {
    what: 'a key that would reach the prototype of objects',
    text: `${SERVICE}__proto__: { enabled: false }\nstream: { __proto__: 1, constructor: 2 }\n`,
    says: [
      '2:1 __proto__: no key may have this name',
      '3:11 stream.__proto__: no key may have this name',
      '3:25 stream.constructor: unknown key; known here: enabled, start_from',
    ],
  },
  {
    what: 'a number that JSON cannot say',
    text: `${TOOL}    parameters: { type: object, default: .nan }`,
    says: ['5:42 tools[0].parameters.default: must be a JSON value'],
  },
  {
    what: 'a structure that contains itself',
    text: `${TOOL}    parameters: &p { type: object, default: *p }`,
    says: ['5:5 tools[0].parameters: is nested more than 64 levels deep'],
  },
]

describe('a configuration with faults names', () => {
  test.each(cases)('$what', async ({ text, env, says }) => {
    const found = (await faultsOf(text, env)).map(summary)
    expect(found).toHaveLength(says.length)
    for (const [index, said] of says.entries()) expect(found[index]).toContain(said)
  })

  test('the parameters of many tools, each by itself', async () => {
    const kinds = ['object', 'objekt', 'object', 'arrei']
    const dialects = [
      'http://json-schema.org/draft-07/schema#',
      'https://json-schema.org/draft/2020-12/schema',
      'x:y',
    ]
    const tools = dialects.flatMap((dialect) => kinds.map((type) => ({ dialect, type })))
    const rows = tools.map(
      ({ dialect, type }, index) =>
        `  - { name: t${index}, url: "http://127.0.0.1:1/", parameters: { $schema: "${dialect}", $id: "a:b", type: ${type} } }`,
    )
    const found = await faultsOf(`${SERVICE}tools:\n${rows.join('\n')}`)
    expect(found.map(({ path }) => path)).toEqual(
      [1, 3, 5, 7, 8, 9, 10, 11].map((index) => `tools[${index}].parameters`),
    )
  })

  test('aliases that would fill the memory', async () => {
    const rows = ['a: &a [x, x, x, x, x, x, x, x, x, x]']
    for (const [before, name] of ['a b', 'b c', 'c d', 'd e', 'e f', 'f g', 'g h'].map((pair) =>
      pair.split(' '),
    )) {
      rows.push(`${name}: &${name} [${Array.from({ length: 10 }, () => `*${before}`).join(', ')}]`)
    }
    const [fault] = await faultsOf(rows.join('\n'))
    expect(fault?.message).toContain('alias')
  })

  test('brackets without end', async () => {
    const depth = 50_000
    const [fault] = await faultsOf(`service: ${'['.repeat(depth)}${']'.repeat(depth)}`)
    expect(fault?.message).toMatch(/nested/)
  })

  test('the file, where it is not there, a directory, too long, or not text', async () => {
    const folder = await folderWith({ long: `# ${'x'.repeat(1024 * 1024)}` })
    await expect(loadConfig(`${folder}/none.yaml`, {})).rejects.toThrow(`${folder}/none.yaml does not exist`)
    await expect(loadConfig(folder, {})).rejects.toThrow(`${folder} is a directory`)
    await expect(loadConfig(`${folder}/long`, {})).rejects.toThrow('is longer than 1048576 bytes')
    await expect(loadConfig(process.execPath, {})).rejects.toThrow(ConfigError)
  })

  test.skipIf(process.getuid?.() === 0)('a file that may not be read', async () => {
    const folder = await folderWith({ 'sidecar.yaml': SERVICE })
    await chmod(`${folder}/sidecar.yaml`, 0)
    await expect(loadConfig(`${folder}/sidecar.yaml`, {})).rejects.toThrow('permission denied')
  })

  test('never a secret', async () => {
    const secret = 'hunter2-hunter2'
    const found = await faultsOf(
      [
        `service: { base_url: "https://user:${secret}@a.b", token: "${secret} ${secret}" }`,
        `store: { url: "mysql://u:${secret}@h/d" }`,
        `webhooks: { secrets: [[${secret}]] }`,
        `handlers: [{ name: a, url: "ftp://u:${secret}@h/", secret: "%${secret}" }]`,
        `admin: { token: { x: ${secret} } }`,
      ].join('\n'),
    )
    expect(found.map((fault) => fault.path)).toEqual([
      'service.base_url',
      'service.token',
      'store.url',
      'webhooks.secrets[0]',
      'handlers[0].url',
      'handlers[0].secret',
      'admin.token',
    ])
    expect(JSON.stringify(found)).not.toContain(secret)
  })
})
