import { writing, type Check } from '../check.ts'
import { typeOf } from '../feed.ts'
import { at, is, kind, milliseconds, orNull, present, rowsOf, string, textAt } from '../kind.ts'
import { describeReply, type Reply } from '../reply.ts'
import { speech } from '../speech.ts'
import { Stuck } from '../stuck.ts'
import { framesOf, required, say, settledTurn } from '../talk.ts'
import type { Trial } from '../trial.ts'

const FUNCTION = {
  type: 'function',
  name: 'conform_echo',
  description: 'Returns its input.',
  parameters: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
}

const RESPOND = ['tools:respond']

function answer(trial: Trial, sessionId: string, body: object): Promise<Reply> {
  const place = trial.places.answer
  if (place === null) throw new Stuck('the description does not show the path of answers')
  return trial.post(place.path.replace(/\{[^}]*\}/, sessionId), body)
}

function isAction(trial: Trial, reply: Reply, action: unknown, type: string): void {
  trial.value(
    type === 'function_call' ? 'ACT-01' : type === 'approval' ? 'ACT-02' : 'ACT-03',
    reply,
    'type',
    at(action, 'type'),
    is(type),
  )
  trial.shape(reply, action, [
    ['turn_id', 'ACT-04', string],
    ['call_id', 'ACT-05', string],
    ['created_at', 'ACT-08', milliseconds],
    ['expires_at', 'ACT-09', orNull(milliseconds)],
  ])
}

const calls = writing(
  'the agent calls a function and gets its answer',
  'ACT-01 ACT-04..09 ACT-12..14 ACT-18 ACT-20 AUT-15 AUT-36 GEN-15 SES-05 SES-36..38 STA-05 STA-08 STA-09 TOO-02 TOO-20 TOO-21 TOO-23 EVT-54 EVT-55 EVT-72 EVT-73 SES-83 SES-125 TRN-05',
  async (trial) => {
    const id = await trial.session({ agent: { tools: [FUNCTION] } })
    await say(trial, id, speech.call(FUNCTION.name, { text: 'ping' }))
    const { action, reply } = await required(trial, id, 'function_call')
    isAction(trial, reply, action, 'function_call')
    trial.is('SES-05 STA-05', reply, 'status', is('requires_action'))
    trial.is('STA-08 SES-36 SES-37', reply, 'required_actions.0', present)
    trial.value('ACT-06 GEN-15 TOO-02', reply, 'name', at(action, 'name'), is(FUNCTION.name))
    trial.value('ACT-07 TOO-21', reply, 'arguments', at(action, 'arguments'), present)
    trial.value('TOO-23', reply, 'expires_at without a deadline', at(action, 'expires_at'), is(null))
    const turns = await trial.get(`/v1/sessions/${id}/turns`)
    trial.is('STA-09', turns, 'data.0.status', is('working'))
    trial.is('ACT-04', turns, 'data.0.id', is(at(action, 'turn_id')))
    const list = await trial.get('/v1/sessions', {
      metadata: `conform:${trial.ground.belongings.mark}`,
      status: 'requires_action',
      limit: '100',
    })
    const row = rowsOf(list.json).find((one) => textAt(one, 'id') === id)
    trial.value(
      'SES-83 SES-125',
      list,
      'required_actions in the list',
      textAt(row, 'required_actions.0.call_id'),
      is(textAt(action, 'call_id')),
    )
    const call_id = textAt(action, 'call_id')
    const bad = await answer(trial, id, { call_id, output: { no: 'string' } })
    trial.refused('ACT-13 ACT-14', bad, 400, 'invalid_request')
    trial.refused('ACT-12', await answer(trial, id, { output: 'x' }), 400, 'invalid_request')
    const good = await answer(trial, id, { call_id, output: JSON.stringify({ pong: true }) })
    trial.expect('ACT-12 ACT-13 AUT-15 AUT-36', good, 'an accepted answer', good.status < 300)
    trial.is('ACT-18', good, 'outcome', string)
    trial.note('ACT-20', `an answer in time is ${textAt(good.json, 'outcome')}`)
    const after = await trial.until(
      `/v1/sessions/${id}`,
      ({ json }) => at(json, 'required_actions.0') === undefined,
    )
    trial.is('SES-38', after, 'required_actions', is([]))
    const { turn, reply: over } = await settledTurn(trial, id)
    trial.value('TRN-05', over, 'status', at(turn, 'status'), is('completed'))
    const frames = await framesOf(trial, id, (all) => all.some((frame) => typeOf(frame) === 'turn.ended'))
    const stream = trial.ground.feed?.reply ?? null
    const frame = frames.find((one) => typeOf(one) === 'tool.required')
    trial.value('EVT-54 EVT-72', stream, 'payload.name', at(frame?.data, 'payload.name'), is(FUNCTION.name))
    trial.value(
      'EVT-73',
      stream,
      'arguments',
      at(frame?.data, 'payload.arguments'),
      is(at(action, 'arguments')),
    )
    trial.expect(
      'EVT-55',
      stream,
      'a frame tool.resolved',
      frames.some((one) => typeOf(one) === 'tool.resolved'),
    )
    await trial.remove(id)
  },
  RESPOND,
)

const errors = writing(
  'a call may be answered with an error',
  'ACT-15 ERR-06 ERR-21',
  async (trial) => {
    const id = await trial.session({ agent: { tools: [FUNCTION] } })
    const stray = await answer(trial, id, { call_id: 'call_conformnobody', output: 'x' })
    trial.refused('ERR-21', stray, 404, 'not_found')
    await say(trial, id, speech.call(FUNCTION.name, { text: 'ping' }))
    const { action } = await required(trial, id, 'function_call')
    const call_id = textAt(action, 'call_id')
    trial.refused('ACT-15 ERR-06', await answer(trial, id, { call_id, error: 7 }), 400, 'invalid_request')
    const reply = await answer(trial, id, { call_id, error: 'The tool failed.' })
    trial.expect('ACT-15', reply, 'an accepted answer', reply.status < 300)
    await trial.remove(id)
  },
  RESPOND,
)

const deadlines = writing(
  'a call without an answer fails at its deadline',
  'ACT-09 ACT-24 ACT-25 TOO-22 LIM-12',
  async (trial) => {
    const id = await trial.session({ agent: { tools: [{ ...FUNCTION, timeout_seconds: 1 }] } })
    await say(trial, id, speech.call(FUNCTION.name, { text: 'late' }))
    const { action, reply } = await required(trial, id, 'function_call')
    const [from, to] = [at(action, 'created_at'), at(action, 'expires_at')]
    trial.value(
      'ACT-09 TOO-22 LIM-12',
      reply,
      'expires_at less created_at',
      Number(to) - Number(from),
      is(1000),
    )
    const gone = await trial.until(
      `/v1/sessions/${id}`,
      ({ json }) => at(json, 'required_actions.0') === undefined,
    )
    trial.is('ACT-24', gone, 'required_actions', is([]))
    const { turn, reply: over } = await settledTurn(trial, id)
    trial.value('ACT-25', over, 'status', at(turn, 'status'), is('completed'))
    await trial.remove(id)
  },
)

async function onlyAPerson(
  trial: Trial,
  type: 'approval' | 'question',
  text: string,
  ids: readonly [string, string, string],
): Promise<void> {
  const [open, state, refused] = ids
  const rules = type === 'approval' ? [{ decision: 'ask', tool: 'shell' }] : []
  const id = await trial.session({ agent: { permission_rules: rules } })
  await say(trial, id, text)
  const { action, reply } = await required(trial, id, type)
  isAction(trial, reply, action, type)
  trial.is(state, reply, 'status', is('requires_action'))
  const stated = ['type', 'turn_id', 'call_id', 'created_at', 'expires_at']
  trial.note(
    open,
    Object.keys(Object(action) as object)
      .filter((key) => !stated.includes(key))
      .join(', ') || 'none',
  )
  const given = await answer(trial, id, { call_id: textAt(action, 'call_id'), output: 'yes' })
  trial.expect(
    refused,
    given,
    'a refusal with a reason',
    given.status >= 400 && describeReply(given).length > 20,
  )
  const after = await trial.get(`/v1/sessions/${id}`)
  trial.is(refused, after, 'required_actions.0', present)
  const name = type === 'approval' ? 'approval.requested' : 'question.asked'
  const frames = await framesOf(trial, id, (all) => all.some((frame) => typeOf(frame) === name))
  trial.expect(
    type === 'approval' ? 'EVT-50' : 'EVT-52',
    trial.ground.feed?.reply ?? null,
    `a frame ${name}`,
    frames.some((frame) => typeOf(frame) === name),
  )
  await trial.remove(id)
}

const approvals = writing(
  'an approval waits for a person',
  'ACT-02 ACT-04 ACT-05 ACT-08..10 ACT-26 ACT-28 STA-06 SES-55 SES-47 EVT-50',
  async (trial) => {
    await onlyAPerson(trial, 'approval', speech.shell('echo approved'), [
      'ACT-10',
      'STA-06 SES-55 SES-47',
      'ACT-26 ACT-28',
    ])
  },
  RESPOND,
)

const questions = writing(
  'a question waits for a person',
  'ACT-03..05 ACT-08 ACT-09 ACT-11 ACT-27 ACT-29 STA-07 EVT-52',
  (trial) =>
    onlyAPerson(trial, 'question', speech.ask('Which colour?'), ['ACT-11', 'STA-07', 'ACT-27 ACT-29']),
  RESPOND,
)

const blocks = writing(
  'modes and rules keep the agent from acting',
  'SES-46 SES-47 SES-53 SES-54 SES-56 SES-61 SES-62 EVT-51 EVT-76..82 EVT-87 SES-49',
  async (trial) => {
    const stream = trial.ground.feed?.reply ?? null
    const attempt = async (agent: object) => {
      const id = await trial.session({ agent: agent as never })
      await say(trial, id, speech.shell('echo blocked'))
      await settledTurn(trial, id)
      const frames = await framesOf(trial, id, (all) => all.some((frame) => typeOf(frame) === 'turn.ended'))
      await trial.remove(id)
      const ran = frames.some((frame) => typeOf(frame) === 'agent.tool_result')
      return { ran, resolved: frames.find((frame) => typeOf(frame) === 'approval.resolved')?.data }
    }
    const rule = (decision: string) => [{ decision, tool: 'shell' }]
    const reading = await attempt({ approval_mode: 'read_only' })
    const denied = await attempt({ permission_rules: rule('deny') })
    const allowed = await attempt({ approval_mode: 'read_only', permission_rules: rule('allow') })
    if (reading.resolved === undefined && denied.resolved === undefined)
      throw new Stuck('the agent tried nothing that could be blocked')
    const blocked = [
      [reading, 'SES-46 SES-49', 'denied_read_only', 'EVT-80'],
      [denied, 'SES-47 SES-54 SES-56 SES-62', 'denied_by_rule', 'EVT-81'],
    ] as const
    for (const [{ resolved, ran }, ids, code, id] of blocked) {
      if (resolved === undefined && !ran) {
        trial.leave(`${ids} ${id}`, 'the agent tried nothing that could be blocked')
        continue
      }
      trial.expect(
        `EVT-87 EVT-51 ${ids}`,
        stream,
        'approval.resolved with approved: false',
        at(resolved, 'payload.approved') === false,
        resolved,
      )
      trial.expect(ids, stream, 'no command that ran', !ran, 'a result')
      trial.value(`EVT-79 ${id}`, stream, 'code', at(resolved, 'payload.code'), is(code))
      trial.shape(stream, resolved, [
        ['payload.approved', 'EVT-76', is(false)],
        ['payload.toolCallId', 'EVT-77', string],
        ['payload.name', 'EVT-78', string],
      ])
      const sentence = kind('a sentence', (payload) =>
        Object.values(Object(payload) as object).some(
          (value) => typeof value === 'string' && value.includes(' '),
        ),
      )
      trial.value('EVT-82', stream, 'payload', at(resolved, 'payload'), sentence)
    }
    if (!allowed.ran && allowed.resolved === undefined)
      trial.leave('SES-53 SES-61', 'the agent tried nothing')
    else {
      const passed = allowed.ran && allowed.resolved === undefined
      trial.expect(
        'SES-53 SES-61',
        stream,
        'a command that an allow rule lets through',
        passed,
        allowed.resolved,
      )
    }
  },
)

export const actions: readonly Check[] = [calls, errors, deadlines, approvals, questions, blocks]
