import { isObject } from '../../std/json.ts'
import { writing, type Check } from '../check.ts'
import { typeOf } from '../feed.ts'
import { array, at, is, kind, object, rowsOf, string, strings, textAt, written } from '../kind.ts'
import { codeOf, describeReply } from '../reply.ts'
import { speech } from '../speech.ts'
import { Stuck } from '../stuck.ts'
import { framesOf, itemsOf, say, settledTurn } from '../talk.ts'
import type { Trial } from '../trial.ts'

const SECRET = 'conform-secret-value'
const NETWORKED = ['web_search', 'web_fetch', 'image_search', 'browse', 'browser_act', 'screenshot']

const path = (id: string): string => `/v1/sessions/${id}/tools`
const put = (trial: Trial, id: string, body: object) => trial.deployment.call('PUT', path(id), { body })

const replacing = writing(
  'all tools of a session are replaced and read back',
  'GEN-27 TOO-02..10 TOO-12 TOO-14..17 TOO-20..22 TOO-30 TOO-31 TOO-33 TOO-39..47 TOO-50..52 TOO-54 TOO-55 VER-14 LIM-10 SES-81 ERR-06 TOO-53',
  async (trial) => {
    const id = await trial.session({ text: { verbosity: 'low' } })
    const standard = await trial.get(path(id))
    trial.status('TOO-54', standard, 200)
    trial.shape(standard, standard.json, [
      ['object', 'TOO-40', is('session.tools')],
      ['session_id', 'TOO-41', is(id)],
      ['tools', 'TOO-42 TOO-33', array],
      ['text', 'SES-81 TOO-44', object],
      ['text.verbosity', 'TOO-44 TOO-47 GEN-27 TOO-46', is('low')],
    ])
    const mine = [
      {
        type: 'function',
        name: 'conform',
        description: 'd',
        parameters: { type: 'object' },
        timeout_seconds: 9,
      },
      { type: 'mcp', name: 'by-url', url: 'https://mcp.example.com', allowed_tools: ['a'], required: false },
      { type: 'mcp', name: 'by-command', command: 'mcp', args: ['one', 'two'] },
      { type: 'web_search', name: 'web_search' },
    ]
    const set = await put(trial, id, { tools: mine })
    trial.status('TOO-50 TOO-52', set, 200)
    trial.note('TOO-53', Object.keys(Object(set.json) as object).join(', '))
    const read = await trial.get(path(id))
    const shown = rowsOf(at(read.json, 'tools'))
    trial.expect(
      'TOO-52',
      set,
      'the tools just set',
      set.text.includes('"conform"') && set.text.includes('by-command'),
    )
    trial.value('TOO-55 TOO-42', read, 'the number of tools', shown.length, is(mine.length))
    const fields: Readonly<Record<string, string>> = {
      description: 'TOO-20',
      parameters: 'TOO-21',
      timeout_seconds: 'TOO-22',
      url: 'TOO-10',
      allowed_tools: 'TOO-15',
      required: 'TOO-16',
      command: 'TOO-12',
      args: 'TOO-14',
      type: 'VER-14',
      name: 'TOO-42',
    }
    for (const tool of mine) {
      const back = shown.find((one) => textAt(one, 'name') === tool.name)
      for (const [field, value] of Object.entries(tool))
        trial.value(
          `GEN-27 TOO-42 ${fields[field] ?? ''}`,
          read,
          `${tool.name}.${field}`,
          at(back, field),
          is(value),
        )
    }
    const networked = shown.map((one) => textAt(one, 'type')).filter((type) => NETWORKED.includes(type))
    trial.value('TOO-30 TOO-03', read, 'networked tools', networked, is(['web_search']))
    const command = shown.find((one) => textAt(one, 'name') === 'by-command')
    trial.value('TOO-17', read, 'required when omitted', at(command, 'required') ?? false, is(false))
    await rest(trial, id)
    await trial.remove(id)
  },
)

async function rest(trial: Trial, id: string): Promise<void> {
  for (const [index, type] of NETWORKED.entries()) {
    const one = await put(trial, id, { tools: [{ type, name: type }] })
    trial.status(`TOO-0${index + 3}`, one, 200)
  }
  const none = await put(trial, id, { tools: [] })
  trial.status('TOO-31 TOO-55', none, 200)
  trial.is('TOO-31 TOO-55 TOO-39', await trial.get(path(id)), 'tools', is([]))
  const shaped = await put(trial, id, { tools: [], text: { verbosity: 'low' } })
  trial.status('TOO-51 TOO-47', shaped, 200)
  trial.is('TOO-51', await trial.get(path(id)), 'text.verbosity', is('low'))
  const many = Array.from({ length: 33 }, (_, index) => ({ type: 'function', name: `f${index}` }))
  trial.refused('LIM-10', await put(trial, id, { tools: many }), 400, 'invalid_request')
  trial.refused('TOO-50 ERR-06', await put(trial, id, { tools: 'all' }), 400, 'invalid_request')
  const plain = await trial.create({})
  const bare = await trial.get(path(textAt(plain.json, 'id')))
  trial.is('TOO-43', bare, 'text', is(null))
  await format(trial, id)
  await trial.remove(textAt(plain.json, 'id'))
}

/** The interface leaves `text.format` open: the check tries an example or a word of the description. */
async function format(trial: Trial, id: string): Promise<void> {
  const { description } = trial.ground
  const { schemas } = description
  const body = schemas.properties(description.find('PUT /v1/sessions/{id}/tools')?.body)
  const schema = schemas.properties(body['text'])['format']
  const [word] = schemas.words(schema)
  const [name, inner] = Object.entries(schemas.properties(schema))[0] ?? []
  const [innerWord] = schemas.words(inner)
  const value = word ?? (name === undefined || innerWord === undefined ? undefined : { [name]: innerWord })
  if (value === undefined) return trial.leave('TOO-45', 'the description does not show a format')
  const reply = await put(trial, id, { tools: [], text: { format: value } })
  trial.status('TOO-45', reply, 200)
  trial.is('TOO-45', await trial.get(path(id)), 'text.format', is(value))
}

const secrets = writing(
  'secrets of MCP servers are withheld and named',
  'TOO-18 TOO-19 TOO-28 TOO-29 ERR-14',
  async (trial) => {
    const id = await trial.session()
    const { description } = trial.ground
    const { schemas } = description
    const body = schemas.properties(description.find('PUT /v1/sessions/{id}/tools')?.body)
    const entry = schemas.properties(schemas.resolve(body['tools'])['items'])
    const holder = ['headers', 'env'].find((name) => Object.hasOwn(entry, name))
    if (holder === undefined)
      throw new Stuck('the description does not show the field for secrets of a tool entry')
    const where = holder === 'headers' ? { url: 'https://mcp.example.com' } : { command: 'mcp' }
    const tools = [{ type: 'mcp', name: 'secretive', ...where, [holder]: { token: SECRET } }]
    const set = await put(trial, id, { tools })
    const read = await trial.get(path(id))
    const session = await trial.get(`/v1/sessions/${id}`)
    for (const reply of [set, read, session])
      trial.expect(
        'TOO-28',
        reply,
        'no secret',
        reply.status === 200 && !reply.text.includes(SECRET),
        'the secret',
      )
    const back = rowsOf(at(read.json, 'tools'))[0]
    trial.value('TOO-18', read, 'redacted', at(back, 'redacted'), strings)
    trial.value(
      'TOO-19',
      read,
      'redacted',
      at(back, 'redacted'),
      kind('naming the secret', (names) => written(names).includes('token')),
    )
    const again = await put(trial, id, { tools: at(read.json, 'tools') })
    if (trial.refused('ERR-14', again, 400, 'invalid_request')) trial.mentions('TOO-29', again, 'redacted')
    await trial.remove(id)
  },
)

/** A name that never resolves (RFC 2606). */
const UNREACHABLE = 'https://conform.invalid/mcp'

const requiredServer = writing(
  'a session whose required MCP server is unreachable does not run',
  'ERR-15 STA-13 STA-14 STA-16 STA-17 TOO-58..60 SES-06',
  async (trial) => {
    const tools = [{ type: 'mcp', name: 'conform_unreachable', url: UNREACHABLE, required: true }]
    const id = await trial.session({ agent: { tools } })
    const files = { files: [{ type: 'inline', path: 'a', data: 'aGk=' }] }
    const reply = await trial.post(`/v1/sessions/${id}/files`, files)
    if (codeOf(reply) === 'conflict') trial.leave('ERR-15', describeReply(reply))
    else if (trial.refused('ERR-15 TOO-58 TOO-60', reply, 400, 'invalid_request'))
      trial.mentions('TOO-59', reply, 'conform_unreachable')
    await say(trial, id, speech.say('never said'))
    const failed = await trial.until(`/v1/sessions/${id}`, ({ json }) => at(json, 'status') === 'failed')
    trial.is('STA-13 STA-14 SES-06', failed, 'status', is('failed'))
    trial.is('STA-16', await trial.get(`/v1/sessions/${id}/turns`), 'data', is([]))
    const { items, reply: list } = await itemsOf(trial, id)
    const error = items.find((item) => textAt(item, 'detail.event') === 'agent.error')
    trial.expect(
      'STA-17',
      list,
      'an error item with the reason',
      written(error).includes('conform_unreachable'),
      error,
    )
    await trial.remove(id)
  },
)

const optionalServer = writing(
  'a session continues without an optional MCP server',
  'EVT-56 EVT-74 EVT-75 EVT-84..86 ITM-07 TOO-11',
  async (trial) => {
    const tools = [{ type: 'mcp', name: 'conform_unreachable', url: UNREACHABLE }]
    const id = await trial.session({ agent: { tools } })
    await say(trial, id, speech.say('without it'))
    const { turn, reply } = await settledTurn(trial, id)
    const status = at(turn, 'status')
    if (status === 'failed') trial.leave('EVT-86', 'the turn failed, perhaps for another reason')
    else trial.value('EVT-86', reply, 'status', status, is('completed'))
    const frames = await framesOf(trial, id, (all) => all.some((frame) => typeOf(frame) === 'turn.ended'))
    const stream = trial.ground.feed?.reply ?? null
    const frame = frames.find((one) => typeOf(one) === 'mcp.unavailable')
    trial.expect(
      'EVT-56 EVT-84',
      stream,
      'a frame mcp.unavailable',
      frame !== undefined,
      frames.map(typeOf).join(', '),
    )
    trial.value(
      'EVT-74 TOO-11',
      stream,
      'payload.server',
      at(frame?.data, 'payload.server'),
      is('conform_unreachable'),
    )
    trial.value('EVT-75', stream, 'payload.reason', at(frame?.data, 'payload.reason'), string)
    const { items, reply: list } = await itemsOf(trial, id)
    const found = items.some((item) => isObject(item) && item['type'] === 'mcp_unavailable')
    trial.expect('EVT-85 ITM-07', list, 'an item mcp_unavailable', found)
    await trial.remove(id)
  },
)

export const tools: readonly Check[] = [replacing, secrets, requiredServer, optionalServer]
