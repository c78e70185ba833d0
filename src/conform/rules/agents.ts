import type { JsonObject } from '../../std/json.ts'
import { writing, type Check } from '../check.ts'
import { array, at, is, milliseconds, nothing, object, orNull, rowsOf, string, textAt } from '../kind.ts'
import { fill } from '../places.ts'
import { describeReply, type Reply } from '../reply.ts'
import { Stuck } from '../stuck.ts'
import type { Trial } from '../trial.ts'

async function save(trial: Trial, body: JsonObject): Promise<Reply> {
  const { saveAgent } = trial.places
  if (saveAgent === null) throw new Stuck('the description does not show the path for saving an agent')
  return trial.post(saveAgent.path, body)
}

function isAgent(trial: Trial, reply: Reply, agent: unknown): void {
  trial.shape(reply, agent, [
    ['object', 'AGT-01 GEN-21', is('agent')],
    ['id', 'AGT-06', string],
    ['name', 'AGT-08', string],
    ['model', 'AGT-10', string],
    ['model_credential_id', 'AGT-11', orNull(string)],
    ['instructions', 'AGT-13', string],
    ['tools', 'AGT-14 VER-15', array],
    ['text', 'AGT-16', object],
    ['created_at', 'AGT-17', milliseconds],
  ])
  for (const tool of rowsOf(at(agent, 'tools')))
    trial.value('AGT-14 VER-15', reply, 'type of a tool', at(tool, 'type'), string)
}

const saving = writing(
  'an agent is saved, read, listed and replaced',
  'AGT-01 AGT-06..14 AGT-16..21 AGT-27..31 AGT-33 AGT-35..37 GEN-21 VER-15 LIM-19 GEN-27 ERR-06 LIM-03 LIM-65 AGT-02',
  async (trial) => {
    const name = `conform-${trial.ground.belongings.mark}`
    const tools = [{ type: 'function', name: 'conform' }]
    const made = await save(trial, { name, instructions: 'Be brief.', tools, text: { verbosity: 'low' } })
    if (made.status >= 300) throw new Stuck(`the agent was not saved: ${describeReply(made)}`)
    trial.note('AGT-33', `POST ${trial.places.saveAgent?.path ?? ''}`)
    const id = textAt(made.json, 'id')
    const read = await trial.get(`/v1/agents/${id}`)
    trial.status('AGT-27', read, 200)
    isAgent(trial, read, read.json)
    trial.shape(read, read.json, [
      ['name', 'AGT-08', is(name)],
      ['instructions', 'AGT-13 GEN-27', is('Be brief.')],
      ['tools.0.name', 'AGT-14 GEN-27', is('conform')],
      ['text.verbosity', 'AGT-16 GEN-27', is('low')],
      ['model_credential_id', 'AGT-11 AGT-12', is(null)],
    ])
    const list = await trial.get('/v1/agents', { limit: '100' })
    const row = rowsOf(list.json).find((one) => textAt(one, 'id') === id)
    trial.expect('AGT-28 AGT-29', list, 'the saved agent', row !== undefined)
    if (row !== undefined) isAgent(trial, list, row)
    await template(trial, read)
    await used(trial, id)
    const again = await save(trial, { name, instructions: 'Be kind.' })
    trial.is('AGT-35 AGT-36 AGT-09', again, 'id', is(id))
    const replaced = await trial.get(`/v1/agents/${id}`)
    trial.is('AGT-35', replaced, 'instructions', is('Be kind.'))
    const dropped =
      at(replaced.json, 'text.verbosity') === undefined &&
      !JSON.stringify(at(replaced.json, 'tools')).includes('"conform"')
    trial.expect('AGT-37', replaced, 'none of the fields left out', dropped)
    const long = await save(trial, { name: `${name}-long`, instructions: 'x'.repeat(32_001) })
    trial.refused('LIM-19', long, 400, 'invalid_request')
    const odd = await save(trial, { name: 7 })
    trial.refused('ERR-06', odd, 400, 'invalid_request')
    await forget(trial, id)
  },
)

/** The deprecated alias returns the same object without the fields about the model. */
async function template(trial: Trial, agent: Reply): Promise<void> {
  const id = textAt(agent.json, 'id')
  const reply = await trial.get(`/v1/environment-templates/${id}`)
  if (reply.status === 404) return trial.leave('AGT-31', 'a saved agent is not a template here')
  trial.status('AGT-31', reply, 200)
  trial.shape(reply, reply.json, [
    ['object', 'AGT-02', is('environment_template')],
    ['model', 'AGT-18', is(undefined)],
    ['model_credential_id', 'AGT-19', is(undefined)],
    ['instructions', 'AGT-20', is(undefined)],
    ['id', 'AGT-21', is(id)],
    ['name', 'AGT-21', is(at(agent.json, 'name'))],
    ['created_at', 'AGT-21', is(at(agent.json, 'created_at'))],
    ['tools', 'AGT-21', is(at(agent.json, 'tools'))],
    ['text', 'AGT-21', is(at(agent.json, 'text'))],
  ])
}

/** Creation accepts the id of a saved agent. */
async function used(trial: Trial, id: string): Promise<void> {
  const reply = await trial.create({ agent: { id } })
  trial.is('AGT-07', reply, 'agent.id', is(id))
  trial.is('AGT-10', reply, 'agent.model', string)
  await trial.remove(textAt(reply.json, 'id'))
}

async function forget(trial: Trial, id: string): Promise<Reply | null> {
  const { deleteAgent } = trial.places
  if (deleteAgent === null) return null
  return trial.deployment.call('DELETE', fill(deleteAgent, { agent: id }))
}

const copying = writing(
  'a saved agent is copied into a session, and fields of the request override it',
  'SES-68 SES-110..114 SES-23 AGT-03..05 AGT-07',
  async (trial) => {
    const name = `conform-${trial.ground.belongings.mark}-copy`
    const tools = [
      { type: 'function', name: 'saved' },
      { type: 'function', name: 'saved_too' },
    ]
    const saved = await save(trial, { name, instructions: 'Saved.', tools, text: { verbosity: 'low' } })
    if (saved.status >= 300) throw new Stuck(`the agent was not saved: ${describeReply(saved)}`)
    const id = textAt(saved.json, 'id')
    const copy = await trial.create({ agent: { id } })
    trial.is('SES-68 SES-23 AGT-07', copy, 'agent.id', is(id))
    trial.is('AGT-03', copy, 'agent.instructions', is('Saved.'))
    trial.is('AGT-03', copy, 'agent.tools.1.name', is('saved_too'))
    const model = textAt(copy.json, 'agent.model')
    const credential = textAt(copy.json, 'agent.model_credential_id')
    const inline = {
      id,
      instructions: 'Inline.',
      tools: [{ type: 'function', name: 'inline' }],
      model,
      model_credential_id: credential,
    }
    const other = await trial.create({ agent: inline, text: {} })
    trial.is('SES-112', other, 'agent.instructions', is('Inline.'))
    trial.is('SES-110', other, 'agent.model', is(model))
    trial.is('SES-111', other, 'agent.model_credential_id', is(credential))
    trial.value('SES-113', other, 'the number of tools', rowsOf(at(other.json, 'agent.tools')).length, is(1))
    trial.is('SES-113', other, 'agent.tools.0.name', is('inline'))
    const otherTools = await trial.get(`/v1/sessions/${textAt(other.json, 'id')}/tools`)
    trial.is('SES-114', otherTools, 'text.verbosity', nothing)
    await save(trial, { name, instructions: 'Changed.' })
    const after = await trial.get(`/v1/sessions/${textAt(copy.json, 'id')}`)
    trial.is('AGT-04', after, 'agent.instructions', is('Saved.'))
    const gone = await forget(trial, id)
    if (gone === null) trial.leave('AGT-05', 'the description does not show the deletion of an agent')
    else
      trial.is(
        'AGT-05',
        await trial.get(`/v1/sessions/${textAt(copy.json, 'id')}`),
        'agent.instructions',
        is('Saved.'),
      )
    for (const reply of [copy, other]) await trial.remove(textAt(reply.json, 'id'))
  },
)

const secrets = writing(
  'secrets of a saved agent are withheld and named',
  'AGT-15 AGT-38 AGT-39 ERR-14',
  async (trial) => {
    const name = `conform-${trial.ground.belongings.mark}-secret`
    const server = {
      type: 'mcp',
      name: 'secretive',
      url: 'https://mcp.example.com',
      headers: { token: 'conform-agent-secret' },
    }
    const saved = await save(trial, { name, tools: [server] })
    if (saved.status >= 300) throw new Stuck(`the agent was not saved: ${describeReply(saved)}`)
    const read = await trial.get(`/v1/agents/${textAt(saved.json, 'id')}`)
    for (const reply of [saved, read])
      trial.expect('AGT-15', reply, 'no secret', !reply.text.includes('conform-agent-secret'), 'the secret')
    trial.expect(
      'AGT-38',
      read,
      'redacted',
      at(read.json, 'tools.0.redacted') !== undefined || at(read.json, 'redacted') !== undefined,
    )
    const again = await save(trial, { name, tools: at(read.json, 'tools') as never })
    trial.refused('AGT-39 ERR-14', again, 400, 'invalid_request')
    await forget(trial, textAt(saved.json, 'id'))
  },
)

export const agents: readonly Check[] = [saving, copying, secrets]
