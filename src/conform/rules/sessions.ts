import { writing, type Check } from '../check.ts'
import { at, is, kind, orNull, string, rowsOf, textAt } from '../kind.ts'
import { describeReply, messageOf, type Reply } from '../reply.ts'
import { Stuck } from '../stuck.ts'
import { isSession } from './lists.ts'

const RULES = [
  { decision: 'allow', tool: 'conform', path: 'a', command: 'b', domain: 'c.example' },
  { decision: 'deny', tool: 'conform' },
  { decision: 'ask', tool: 'conform' },
]

const creation = writing(
  'a session is created with all fields, and read back',
  'SES-01..03 SES-08 SES-09 SES-12..17 SES-21 SES-23..36 SES-39 SES-42 SES-49 SES-52..59 SES-65 SES-66 SES-71..76 SES-78 SES-81 SES-84 SES-105 PRE-01..03 GEN-02 GEN-06 GEN-21 GEN-27 AUT-15 SES-69 SES-70',
  async (trial) => {
    const agent = {
      instructions: 'Be brief.',
      approval_mode: 'read_only',
      permission_rules: RULES,
      tools: [],
    }
    const files = [{ type: 'inline', path: 'conform.txt', data: 'aGk=' }]
    const body = {
      title: 'conform: all fields',
      metadata: { a: 'b: c' },
      agent,
      environment: { files },
      text: { verbosity: 'low' },
    }
    const reply = await trial.post('/v1/sessions', trial.marked(body))
    const accepts = 'SES-71..76 SES-78 SES-81 SES-105 SES-49 SES-52..59 SES-65 GEN-06 AUT-15'
    const accepted = trial.expect(accepts, reply, 'a session', reply.status < 300)
    trial.status('SES-66', reply, 201)
    if (!accepted) throw new Stuck(`no session: ${describeReply(reply)}`)
    const id = textAt(reply.json, 'id')
    isSession(trial, reply, reply.json)
    trial.is('SES-17', reply, 'source', is('api'))
    const again = await trial.get(`/v1/sessions/${id}`)
    trial.status('SES-84 GEN-02', again, 200)
    const { json } = again
    trial.shape(again, json, [
      ['id', 'SES-84', is(id)],
      ['title', 'SES-12 SES-75 GEN-27', is(body.title)],
      ['metadata.a', 'SES-15 SES-76 GEN-27', is('b: c')],
      ['agent.instructions', 'SES-27 SES-71 GEN-27', is('Be brief.')],
      ['agent.approval_mode', 'SES-26 SES-72 SES-49 GEN-27', is('read_only')],
      ['agent.tools', 'SES-29 SES-74 GEN-27', is([])],
    ])
    const rules = at(json, 'agent.permission_rules')
    const kept = Array.isArray(rules) ? (rules as unknown[]) : []
    for (const [index, rule] of RULES.entries())
      for (const [field, value] of Object.entries(rule))
        trial.value(
          'SES-28 SES-73 GEN-27',
          again,
          `permission_rules.${index}.${field}`,
          at(kept[index], field),
          is(value),
        )
    const bare = await trial.create({ title: '' })
    trial.value('SES-13', bare, 'title', at(bare.json, 'title'), is(''))
    const [model, credential] = [
      textAt(bare.json, 'agent.model'),
      textAt(bare.json, 'agent.model_credential_id'),
    ]
    if (model !== '' && credential !== '') {
      const named = await trial.post(
        '/v1/sessions',
        trial.marked({ agent: { model, model_credential_id: credential } }),
      )
      trial.expect('SES-69 SES-70', named, 'a session', named.status < 300)
      trial.is('SES-39 SES-69', named, 'agent.model', is(model))
      trial.is('SES-70', named, 'agent.model_credential_id', is(credential))
      await trial.remove(textAt(named.json, 'id'))
    }
    await trial.remove(textAt(bare.json, 'id'))
    await trial.remove(id)
  },
)

const defaults = writing(
  'a session needs no fields',
  'SES-67 SES-97 SES-03 TOO-33 SES-30 STA-31 SES-40 SES-44 MOD-08',
  async (trial) => {
    const reply = await trial.create({})
    trial.expect('SES-67', reply, 'a session', reply.status < 300)
    trial.is('SES-97', reply, 'agent.model', string)
    trial.is('SES-03', reply, 'status', is('idle'))
    const state = at(reply.json, 'environment.state')
    if (state === 'unknown') trial.is('STA-31', reply, 'environment.state', is('unknown'))
    else trial.leave('STA-31', `a new session is ${String(state)}`)
    trial.is('SES-40', reply, 'environment.repo.branch', orNull(string))
    trial.is('SES-44', reply, 'environment.repo.clone_error', orNull(string))
    trial.is('TOO-33', reply, 'agent.tools', kind('an array', Array.isArray))
    trial.is('MOD-08', reply, 'agent.model_credential_id', string)
    await trial.remove(textAt(reply.json, 'id'))
  },
)

const changes = writing(
  'a session is changed by PATCH',
  'SES-10 SES-85..90 SES-118 SES-122 SES-121 ERR-06 ERR-07 GEN-27 SES-50',
  async (trial) => {
    const made = await trial.create({ metadata: { kept: 'no' } })
    const id = textAt(made.json, 'id')
    const path = `/v1/sessions/${id}`
    const patch = (body: object) => trial.deployment.call('PATCH', path, { body })
    const mark = trial.ground.belongings.mark
    const before = at(made.json, 'updated_at')
    await trial.deployment.pause(5)
    const titled = await patch({ title: 'conform: patched' })
    trial.status('SES-85 SES-86 SES-122', titled, 200)
    trial.is('SES-86 SES-85', titled, 'title', is('conform: patched'))
    const later = kind(
      `after ${String(before)}`,
      (value) => typeof value === 'number' && value > Number(before),
    )
    trial.is('SES-10', titled, 'updated_at', later)
    const tagged = await patch({ metadata: { conform: mark, added: 'yes' } })
    trial.status('SES-87', tagged, 200)
    trial.is('SES-87', tagged, 'metadata.added', is('yes'))
    const steps = [
      ['SES-88', 'instructions', 'Be kind.'],
      ['SES-89', 'approval_mode', 'read_only'],
      ['SES-90', 'permission_rules', [{ decision: 'deny', tool: 'conform' }]],
    ] as const
    for (const [ids, field, value] of steps) {
      const reply = await patch({ agent: { [field]: value } })
      trial.status(`${ids} SES-122`, reply, 200)
      const read = await trial.get(path)
      const seen = at(read.json, `agent.${field}`)
      trial.value(
        `${ids} GEN-27`,
        read,
        field,
        field === 'permission_rules' ? at(seen, '0.decision') : seen,
        is(field === 'permission_rules' ? 'deny' : value),
      )
    }
    trial.refused('ERR-07', await patch({}), 400, 'invalid_request')
    const mode = await patch({ agent: { approval_mode: 'per_step' } })
    if (trial.refused('ERR-06 SES-50', mode, 400, 'invalid_request'))
      trial.mentions('SES-118', mode, 'approval_mode')
    const title = await patch({ title: 7 })
    if (trial.refused('ERR-06', title, 400, 'invalid_request')) trial.mentions('SES-118', title, 'title')
    trial.refused('SES-122', await patch({ environment: { files: [] } }), 400, 'invalid_request')
    trial.refused('SES-122', await patch({ agent: { tools: [] } }), 400, 'invalid_request')
    const model = textAt(made.json, 'agent.model')
    const moved = await patch({ agent: { model } })
    if (moved.status === 200) trial.is('SES-121', moved, 'agent.model', is(model))
    else trial.leave('SES-121', `the interface contradicts itself (SES-122); here: ${describeReply(moved)}`)
    await trial.remove(id)
  },
)

const removal = writing(
  'a deleted session does not exist, and its slot is free',
  'SES-91 SES-92 LIM-62 ERR-21 GEN-23 LIM-66 LIM-67 LIM-68 LIM-65 SES-123 SES-124 SES-82 SES-83 LIM-03',
  async (trial) => {
    const word = `list-${trial.ground.belongings.mark}`
    const ids: string[] = []
    for (let count = 0; count < 4; count++) {
      ids.push(await trial.session({ metadata: { word } }))
      await trial.deployment.pause(2)
    }
    const filter = { metadata: `word:${word}` }
    const list = async (query: Record<string, string>) => trial.get('/v1/sessions', { ...filter, ...query })
    const idsIn = (json: unknown): string[] => rowsOf(json).map((row) => textAt(row, 'id'))
    const all = await list({})
    const same = idsIn(all.json).toSorted().join() === ids.toSorted().join()
    trial.expect('SES-123 SES-124 SES-82', all, 'the four sessions with the pair', same, idsIn(all.json))
    for (const row of rowsOf(all.json))
      trial.value('SES-83', all, 'required_actions', at(row, 'required_actions'), is([]))
    const up = await list({ order: 'asc' })
    trial.expect('LIM-66', up, 'the oldest first', idsIn(up.json).join() === ids.join(), idsIn(up.json))
    const down = await list({ order: 'desc' })
    const reverse = ids.toReversed().join()
    trial.expect('LIM-67', down, 'the newest first', idsIn(down.json).join() === reverse, idsIn(down.json))
    trial.expect(
      'LIM-68',
      all,
      'the newest first by default',
      idsIn(all.json).join() === reverse,
      idsIn(all.json),
    )
    const first = await list({ order: 'asc', limit: '2' })
    trial.is('LIM-65', first, 'has_more', is(true))
    trial.expect('LIM-03', first, 'two rows', idsIn(first.json).length === 2, idsIn(first.json))
    const next = await list({ order: 'asc', limit: '2', after: textAt(first.json, 'last_id') })
    trial.is('LIM-65', next, 'has_more', is(false))
    trial.expect(
      'GEN-23',
      next,
      'the page after',
      idsIn(next.json).join() === ids.slice(2).join(),
      idsIn(next.json),
    )
    const [gone = ''] = ids
    const removed = await trial.remove(gone)
    trial.expect('SES-91', removed, 'a deletion', removed.status < 300)
    trial.note('SES-92', `${removed.status} ${removed.text || 'without a body'}`)
    trial.refused('SES-91 ERR-21', await trial.get(`/v1/sessions/${gone}`), 404, 'not_found')
    const lost = await list({ order: 'asc', after: gone })
    trial.is('LIM-62', lost, 'data', is([]))
    trial.is('LIM-62', lost, 'has_more', is(false))
    for (const id of ids.slice(1)) await trial.remove(id)
  },
)

const metadata = writing('metadata holds only strings', 'SES-14 ERR-11 LIM-22 LIM-23', async (trial) => {
  const id = await trial.session()
  const made = await trial.post('/v1/sessions', { ...trial.marked({}), metadata: { conform: 7 } })
  trial.refused('ERR-11 SES-14', made, 400, 'invalid_request')
  const path = `/v1/sessions/${id}`
  const mark = trial.ground.belongings.mark
  const sized = (length: number): Promise<Reply> =>
    trial.deployment.call('PATCH', path, {
      body: { metadata: { conform: mark, long: 'x'.repeat(length) } },
    })
  let [short, long] = [1, 100_000]
  const over = await sized(long)
  if (over.status < 300) {
    trial.is('LIM-22', over, 'metadata.long', is('x'.repeat(long)))
    trial.note('LIM-23', `more than ${long} characters`)
    return void (await trial.remove(id))
  }
  trial.refused('LIM-22', over, 400, 'invalid_request')
  while (long - short > 1) {
    const middle = Math.floor((short + long) / 2)
    const reply = await sized(middle)
    if (reply.status < 300) short = middle
    else if (messageOf(reply).includes('metadata')) long = middle
    else throw new Stuck(describeReply(reply))
  }
  trial.note('LIM-23', `a value may have ${short} characters`)
  await trial.remove(id)
})

export const sessions: readonly Check[] = [creation, defaults, changes, removal, metadata]
