import type { JsonObject } from '../../std/json.ts'
import { writing, type Check } from '../check.ts'
import { at, is, present, rowsOf, textAt } from '../kind.ts'
import { codeOf, describeReply, type Reply } from '../reply.ts'
import { messageBody, speech } from '../speech.ts'
import { Stuck } from '../stuck.ts'
import type { Trial } from '../trial.ts'

interface Refusal {
  ids: string
  body: JsonObject
  /** Rules about the text of the refusal's message, and the words that it must contain. */
  words?: readonly [ids: string, ...words: string[]]
}

const tool = (entry: JsonObject): JsonObject => ({ agent: { tools: [entry] } })
const rule = (entry: JsonObject): JsonObject => ({ agent: { permission_rules: [entry] } })
const functions = (count: number): JsonObject[] =>
  Array.from({ length: count }, (_, index) => ({ type: 'function', name: `f${index}` }))

/** Bodies that creation must refuse, with the rules that say so and the words of the refusal. */
const REFUSALS: readonly Refusal[] = [
  { ids: 'ERR-04', body: { titel: 'x' }, words: ['GEN-25', 'title', 'metadata', 'agent', 'environment'] },
  {
    ids: 'ERR-04',
    body: { agent: { instruction: 'x' } },
    words: ['GEN-25', 'instructions', 'approval_mode'],
  },
  { ids: 'SES-50 ERR-06', body: { agent: { approval_mode: 'per_step' } } },
  { ids: 'SES-60', body: rule({ decision: 'perhaps' }) },
  { ids: 'SES-60 SES-52', body: rule({ tool: 'shell' }) },
  { ids: 'SES-60', body: rule({ decision: 'deny', tools: 'shell' }) },
  { ids: 'SES-60 SES-56', body: rule({ decision: 'deny', tool: 7 }) },
  { ids: 'LIM-14', body: rule({ decision: 'deny', tool: 'x'.repeat(501) }) },
  { ids: 'LIM-14', body: rule({ decision: 'deny', command: 'x'.repeat(501) }) },
  {
    ids: 'LIM-13',
    body: { agent: { permission_rules: Array.from({ length: 51 }, () => ({ decision: 'deny' })) } },
  },
  { ids: 'LIM-10', body: { agent: { tools: functions(33) } } },
  { ids: 'LIM-11 TOO-09', body: tool({ type: 'function', name: '' }) },
  { ids: 'LIM-11', body: tool({ type: 'function', name: 'x'.repeat(65) }) },
  { ids: 'TOO-09', body: tool({ type: 'function', name: 7 }) },
  {
    ids: 'LIM-12',
    body: tool({ type: 'function', name: 'f', timeout_seconds: 0 }),
  },
  {
    ids: 'LIM-12',
    body: tool({ type: 'function', name: 'f', timeout_seconds: 7201 }),
  },
  {
    ids: 'TOO-22',
    body: tool({ type: 'function', name: 'f', timeout_seconds: 1.5 }),
  },
  { ids: 'TOO-20', body: tool({ type: 'function', name: 'f', description: 7 }) },
  { ids: 'TOO-21', body: tool({ type: 'function', name: 'f', parameters: 'none' }) },
  { ids: 'TOO-10', body: tool({ type: 'function', name: 'f', url: 'https://mcp.invalid' }) },
  { ids: 'TOO-12', body: tool({ type: 'function', name: 'f', command: 'mcp' }) },
  {
    ids: 'TOO-16',
    body: tool({ type: 'mcp', name: 'm', url: 'https://mcp.invalid', required: 'no' }),
  },
  {
    ids: 'TOO-15',
    body: tool({ type: 'mcp', name: 'm', url: 'https://mcp.invalid', allowed_tools: 'all' }),
  },
  { ids: 'TOO-14', body: tool({ type: 'mcp', name: 'm', command: 'mcp', args: 'one two' }) },
  {
    ids: 'TOO-24',
    body: tool({ type: 'mcp', name: 'm', url: 'https://mcp.invalid', command: 'mcp' }),
  },
  { ids: 'TOO-25', body: tool({ type: 'mcp', name: 'm' }) },
  {
    ids: 'TOO-26',
    body: tool({ type: 'function', name: 'f', parametres: {} }),
    words: ['TOO-27', 'parameters', 'description', 'timeout_seconds'],
  },
  {
    ids: 'TOO-26',
    body: tool({ type: 'mcp', name: 'm', url: 'https://mcp.invalid', comand: 'x' }),
    words: ['TOO-27', 'command', 'allowed_tools', 'required'],
  },
  {
    ids: 'ERR-14',
    body: tool({ type: 'mcp', name: 'm', url: 'https://mcp.invalid', redacted: [] }),
    words: ['TOO-29', 'redacted'],
  },
  { ids: 'TOO-01 TOO-02', body: tool({ type: 'conform', name: 'm' }) },
  { ids: 'LIM-19', body: { agent: { instructions: 'x'.repeat(32_001) } } },
  { ids: 'ERR-12', body: { agent: { model: 'conform-no-model' } }, words: ['SES-98', 'conform-no-model'] },
  {
    ids: 'ERR-13',
    body: { agent: { model_credential_id: 'conform-no-credential' } },
    words: ['SES-99', 'conform-no-credential'],
  },
  { ids: 'SES-42 SES-41 ERR-04', body: { environment: { branch: 'main' } } },
  { ids: 'SES-41', body: { environment: { repo: { full_name: 'a/b', branch: 'main' } } } },
  { ids: 'ERR-06', body: { title: 7 } },
  {
    ids: 'SES-105 FIL-26 ERR-06',
    body: { environment: { files: [{ type: 'inline', path: 'a', data: 7 }] } },
  },
  { ids: 'SES-68 ERR-06', body: { agent: { id: 'conform-no-agent' } } },
]

const refusals = writing(
  'creation refuses invalid bodies',
  'ERR-03 ERR-04 ERR-06 ERR-12..14 GEN-24 GEN-25 SES-41 SES-42 SES-50 SES-52 SES-56 SES-60 SES-68 SES-98 SES-99 SES-101 SES-105 LIM-10..14 LIM-19 TOO-01 TOO-02 TOO-09 TOO-10 TOO-12 TOO-14..16 TOO-20..22 TOO-24..27 TOO-29 FIL-26',
  async (trial) => {
    const word = `refused-${trial.ground.belongings.mark}`
    const id = await trial.session()
    for (const { ids, body, words } of REFUSALS) {
      const reply = await submit(trial, id, { ...body, metadata: { word } })
      const refused = trial.refused(ids, reply, 400, 'invalid_request')
      if (refused && words !== undefined) trial.mentions(words[0], reply, ...words.slice(1))
      if (refused && 'titel' in body) trial.suggests('GEN-24', reply, 'title')
      if (reply.status >= 300) trial.status('ERR-03', reply, 400)
      else if (reply.sent.method === 'POST') await trial.remove(textAt(reply.json, 'id'))
    }
    const left = await trial.get('/v1/sessions', { metadata: `word:${word}` })
    trial.is('SES-101', left, 'data', is([]))
    await trial.remove(id)
  },
)

/** Tools and rules are sent to an existing session: that uses neither a session slot nor the budget of creations. */
function submit(trial: Trial, id: string, body: JsonObject): Promise<Reply> {
  const [tools, rules] = [at(body, 'agent.tools'), at(body, 'agent.permission_rules')]
  const path = `/v1/sessions/${id}`
  if (tools !== undefined) return trial.deployment.call('PUT', `${path}/tools`, { body: { tools } })
  if (rules === undefined) return trial.post('/v1/sessions', trial.marked(body))
  return trial.deployment.call('PATCH', path, { body: { agent: { permission_rules: rules } } })
}

/** A value just inside a limit must be accepted. */
const inside = writing(
  'creation accepts values just inside the limits',
  'LIM-10..14 LIM-19 TOO-01..10 TOO-12 TOO-14..17 TOO-20..22 SES-74',
  async (trial) => {
    const rules = Array.from({ length: 50 }, () => ({ decision: 'deny', tool: 'x'.repeat(500) }))
    const tools = [
      { type: 'mcp', name: 'by-url', url: 'https://mcp.invalid', allowed_tools: ['a'] },
      { type: 'mcp', name: 'by-command', command: 'mcp', args: ['one'], required: false },
      {
        type: 'function',
        name: 'x'.repeat(64),
        description: 'd',
        parameters: { type: 'object' },
        timeout_seconds: 7200,
      },
      { type: 'function', name: 'f', timeout_seconds: 1 },
      ...['web_search', 'web_fetch', 'image_search', 'browse', 'browser_act', 'screenshot'].map((type) => ({
        type,
        name: type,
      })),
    ]
    const agent = {
      instructions: 'x'.repeat(32_000),
      permission_rules: rules,
      tools: [...tools, ...functions(32 - tools.length)],
    }
    const reply = await trial.post('/v1/sessions', trial.marked({ agent }))
    const ids = 'LIM-10..14 LIM-19 TOO-01..10 TOO-12 TOO-14..16 TOO-20..22 SES-74'
    if (!trial.expect(ids, reply, 'a session', reply.status < 300)) return
    const read = await trial.get(`/v1/sessions/${textAt(reply.json, 'id')}/tools`)
    const shown = rowsOf(at(read.json, 'tools'))
    trial.value('LIM-10', read, 'the number of tools', shown.length, is(32))
    const byUrl = shown.find((one) => textAt(one, 'name') === 'by-url')
    trial.value('TOO-17 TOO-16', read, 'required when omitted', at(byUrl, 'required') ?? false, is(false))
    await trial.remove(textAt(reply.json, 'id'))
  },
)

const surroundings = writing(
  'a session is created in the requested environment',
  'SES-43 SES-77 SES-79 SES-103 SES-104 SES-117',
  async (trial) => {
    const profiles = await trial.get('/v1/environment-profiles')
    const profile = textAt(profiles.json, 'data.0.id')
    if (profile === '') trial.leave('SES-79 SES-117', 'there is no environment profile')
    else {
      const made = await trial.post('/v1/sessions', trial.marked({ environment: { profiles: [profile] } }))
      if (trial.expect('SES-79', made, 'a session', made.status < 300))
        await trial.remove(textAt(made.json, 'id'))
      trial.note('SES-117', 'the ids of profiles')
    }
    const { description } = trial.ground
    const create = description.schemas.properties(description.find('POST /v1/sessions')?.body)
    const environment = description.schemas.properties(create['environment'])
    const [name] = Object.keys(description.schemas.properties(environment['repo']))
    if (name === undefined) throw new Stuck('the description does not show the field of a repository')
    const body = trial.marked({ environment: { repo: { [name]: 'conform/conform' } } })
    const reply = await trial.post('/v1/sessions', body)
    if (reply.status < 300) {
      trial.expect('SES-77 SES-43', reply, 'a session', reply.status === 201)
      trial.leave('SES-103 SES-104', 'this organization has a repository-host connection')
      return void (await trial.remove(textAt(reply.json, 'id')))
    }
    trial.expect('SES-103 SES-104', reply, 'a refusal', reply.status >= 400 && reply.status < 500)
    trial.leave('SES-77 SES-43', 'this organization has no repository-host connection')
  },
)

const sizes = writing(
  'bodies have their limits',
  'LIM-01 LIM-02 ERR-08 ERR-10 FIL-39 FIL-40 LIM-52',
  async (trial) => {
    const id = await trial.session()
    const long = await patched(trial, id, 1024 * 1024 + 1024)
    refusedWhole(trial, 'LIM-01 ERR-08', long)
    const huge = await sent(trial, { title: 'x'.repeat(16 * 1024 * 1024 + 1024) })
    refusedWhole(trial, 'LIM-02 ERR-08', huge)
    const word = `large-${trial.ground.belongings.mark}`
    const data = 'A'.repeat(14 * 1024 * 1024)
    const files = {
      metadata: { word },
      environment: { files: [{ type: 'inline', path: 'large.bin', data }] },
    }
    const large = await sent(trial, files)
    if (large.reply === null) trial.leave('ERR-10 FIL-39 FIL-40', large.why)
    else if (large.reply.status < 300) {
      trial.leave('ERR-10 FIL-39 FIL-40', 'a file of 10.5 MiB is under the limits of this deployment')
      await trial.remove(textAt(large.reply.json, 'id'))
    } else {
      trial.refused('ERR-10 FIL-39', large.reply, 400, 'invalid_request')
      trial.note('LIM-52', describeReply(large.reply).slice(0, 200))
      const left = await trial.get('/v1/sessions', { metadata: `word:${word}` })
      trial.is('FIL-40', left, 'data', is([]))
    }
    await trial.remove(id)
  },
)

type Outcome = { reply: Reply; why: '' } | { reply: null; why: string }

async function patched(trial: Trial, id: string, characters: number): Promise<Outcome> {
  const asking = { body: { title: 'x'.repeat(characters) } }
  return outcome(() => trial.deployment.call('PATCH', `/v1/sessions/${id}`, asking))
}

function sent(trial: Trial, body: JsonObject): Promise<Outcome> {
  return outcome(() => trial.post('/v1/sessions', trial.marked(body)))
}

/** The number of attempts for a body whose answer does not arrive. */
const UPLOADS = 3

/**
 * A service may answer before it has read the whole body, and close the connection (ERR-49, ERR-50). Then the answer
 * may be lost.
 */
async function outcome(send: () => Promise<Reply>): Promise<Outcome> {
  for (let upload = 1; ; upload++) {
    try {
      return { reply: await send(), why: '' }
    } catch (error) {
      if (!(error instanceof Stuck)) throw error
      const why = `the answer was lost while the body was sent: ${error.message}`
      if (upload === UPLOADS) return { reply: null, why }
    }
  }
}

function refusedWhole(trial: Trial, ids: string, { reply, why }: Outcome): void {
  if (reply === null) return trial.leave(ids, why)
  trial.expect(ids, reply, '400 invalid_request', reply.status === 400 && codeOf(reply) === 'invalid_request')
}

const opening = writing(
  'input opens a session with its first message, or not at all',
  'SES-80 SES-100 SES-101 STA-21 SES-04',
  async (trial) => {
    const { description, belongings } = trial.ground
    const create = description.find('POST /v1/sessions')
    const input = description.schemas.properties(create?.body)['input']
    const body = messageBody(description.schemas, input, speech.say('opened'))
    if (body === null) throw new Stuck('the description does not show the body of input')
    const reply = await trial.create({ input: body as never })
    trial.expect('SES-80 SES-100 STA-21', reply, 'a session', reply.status < 300)
    const id = textAt(reply.json, 'id')
    const turns = await trial.until(
      `/v1/sessions/${id}/turns`,
      ({ json }) => at(json, 'data.0') !== undefined,
    )
    trial.is('SES-100 SES-80', turns, 'data.0', present)
    const word = `none-${belongings.mark}`
    const bad = await trial.post('/v1/sessions', trial.marked({ metadata: { word }, input: { conform: 1 } }))
    trial.expect('SES-101', bad, 'a refusal', bad.status === 400 && codeOf(bad) === 'invalid_request')
    const left = await trial.get('/v1/sessions', { metadata: `word:${word}` })
    trial.is('SES-101', left, 'data', is([]))
    if (textAt(reply.json, 'status') === 'working') trial.is('SES-04', reply, 'status', is('working'))
    await trial.remove(id)
  },
)

export const creation: readonly Check[] = [refusals, inside, surroundings, sizes, opening]
