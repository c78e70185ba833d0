import { writing, type Check } from '../check.ts'
import { seqOf, typeOf, type Frame } from '../feed.ts'
import { TRANSIENT } from '../interface.ts'
import {
  array,
  at,
  beginning,
  ifAny,
  is,
  kind,
  milliseconds,
  object,
  orNull,
  rowsOf,
  string,
  textAt,
} from '../kind.ts'
import { fill } from '../places.ts'
import type { Reply } from '../reply.ts'
import { speech } from '../speech.ts'
import { Stuck } from '../stuck.ts'
import { framesOf, itemsOf, say, settledTurn, turnOf } from '../talk.ts'
import type { Trial } from '../trial.ts'
import { isList } from './lists.ts'

const ended = (frames: readonly Frame[]): boolean => frames.some((frame) => typeOf(frame) === 'turn.ended')

function isTurn(trial: Trial, reply: Reply, turn: unknown, sessionId: string): void {
  trial.shape(reply, turn, [
    ['object', 'TRN-01 GEN-21', is('turn')],
    ['id', 'TRN-02', beginning('turn_')],
    ['session_id', 'TRN-03', is(sessionId)],
    ['created_at', 'TRN-07', milliseconds],
    ['started_at', 'TRN-08', milliseconds],
    ['completed_at', 'TRN-09', milliseconds],
    ['artifacts', 'TRN-10', orNull(string)],
    ['artifacts_skipped', 'TRN-16', array],
    ['subagent_id', 'TRN-19', ifAny(string)],
    ['error', 'TRN-20', ifAny(object)],
  ])
}

function isItem(trial: Trial, reply: Reply, item: unknown, sessionId: string): void {
  trial.shape(reply, item, [
    ['object', 'ITM-01 GEN-21', is('item')],
    ['id', 'ITM-03', string],
    ['session_id', 'ITM-04', is(sessionId)],
    ['created_at', 'ITM-09', milliseconds],
    ['role', 'ITM-10', string],
    ['content', 'ITM-11', string],
    ['detail', 'ITM-12', object],
    ['detail.event', 'ITM-13', string],
  ])
}

const turns = writing(
  'a message makes a turn',
  'GEN-02 GEN-17 GEN-21 GEN-22 INP-01 INP-02 INP-06..08 STA-19..21 STA-24 STA-29 TRN-01..03 TRN-05 TRN-07..10 TRN-13 TRN-16 TRN-19 TRN-20 TRN-22 TRN-23 TRN-26 TRN-27 ITM-01..05 ITM-09..13 ITM-17 EVT-01 EVT-03 EVT-08..14 EVT-38..40 EVT-46 EVT-57 EVT-65 EVT-66 EVT-68 EVT-69 SES-03 SES-10 STA-30 LIM-04 LIM-65..68 GEN-23 ERR-09 LIM-03 SES-86',
  async (trial) => {
    const id = await trial.session()
    const sent = await say(trial, id, speech.say('hello'))
    trial.status('INP-01 STA-19 STA-21', sent, 202)
    trial.is('INP-06', sent, 'turn_id', is(undefined))
    const { turn, reply } = await settledTurn(trial, id)
    isTurn(trial, reply, turn, id)
    if (at(turn, 'status') !== 'completed') throw new Stuck(`the turn ended ${textAt(turn, 'status')}`)
    trial.value('TRN-05 STA-24', reply, 'status', at(turn, 'status'), is('completed'))
    trial.value('TRN-13 TRN-22 TRN-23 STA-29', reply, 'artifacts', at(turn, 'artifacts'), is('ready'))
    isList(trial, reply)
    trial.value('INP-08 TRN-26 GEN-02 INP-02', reply, 'the number of turns', rowsOf(reply.json).length, is(1))
    const turnId = textAt(turn, 'id')
    const single = trial.places.turn
    if (single !== null) {
      const one = await trial.get(fill(single, { session: id, turn: turnId }))
      trial.note('TRN-27', `${single.method} ${single.path}`)
      if (one.status === 200) isTurn(trial, one, one.json, id)
    }
    const session = await trial.until(`/v1/sessions/${id}`, ({ json }) => at(json, 'status') === 'idle')
    trial.is('SES-03', session, 'status', is('idle'))
    trial.is('STA-20 STA-30', session, 'environment.state', is('running'))
    await items(trial, id)
    await frames(trial, id, turnId)
    await trial.remove(id)
  },
)

async function items(trial: Trial, id: string): Promise<void> {
  const { items: all, reply } = await itemsOf(trial, id)
  isList(trial, reply)
  trial.expect('ITM-17 ITM-02', reply, 'a transcript', all.length >= 2)
  for (const item of all) isItem(trial, reply, item, id)
  const mine = all.find((item) => textAt(item, 'detail.event') === 'user.message')
  trial.value(
    'ITM-05 ITM-10',
    reply,
    'the user message',
    [at(mine, 'type'), at(mine, 'role')],
    is(['message', 'user']),
  )
  const path = `/v1/sessions/${id}/items`
  const ids = async (query: Record<string, string>) =>
    rowsOf((await trial.get(path, query)).json).map((row) => textAt(row, 'id'))
  const [up, down, silent] = [await ids({ order: 'asc' }), await ids({ order: 'desc' }), await ids({})]
  trial.expect('LIM-67', reply, 'the reverse of asc', down.join() === up.toReversed().join(), down)
  trial.expect('LIM-68', reply, 'desc by default', silent.join() === down.join(), silent)
  const first = await trial.get(path, { order: 'asc', limit: '1' })
  trial.is('LIM-65', first, 'has_more', is(true))
  const second = await trial.get(path, { order: 'asc', limit: '1', after: textAt(first.json, 'last_id') })
  trial.expect('GEN-23', second, 'the second item', textAt(second.json, 'data.0.id') === up[1])
  for (const list of ['items', 'turns'])
    trial.refused(
      'ERR-09 LIM-03',
      await trial.get(`/v1/sessions/${id}/${list}`, { limit: '101' }),
      400,
      'invalid_request',
    )
}

async function frames(trial: Trial, id: string, turnId: string): Promise<void> {
  const seen = await framesOf(trial, id, ended)
  const { reply } = trial.ground.feed as NonNullable<typeof trial.ground.feed>
  trial.expect(
    'EVT-01 EVT-03 GEN-17',
    reply,
    'frames of the session on the stream of the organization',
    seen.length > 0,
  )
  for (const frame of seen) {
    trial.value('EVT-08', reply, 'event:', frame.event, string)
    trial.value('EVT-09', reply, 'data:', frame.data, object)
    const name = typeOf(frame)
    trial.shape(reply, frame.data, [
      ['type', 'EVT-10', string],
      ['internal_type', 'EVT-11', string],
      ['payload', 'EVT-12', object],
      ['seq', 'EVT-13', orNull(kind('a seq', (seq) => typeof seq === 'number' || typeof seq === 'string'))],
    ])
    if (seqOf(frame) !== null)
      trial.value('EVT-14', reply, `id: of ${name}`, frame.id, is(String(seqOf(frame))))
  }
  const had = (ids: string, name: string): Frame | undefined => {
    const found = seen.find((frame) => typeOf(frame) === name)
    trial.expect(ids, reply, `a frame ${name}`, found !== undefined, seen.map(typeOf).join(', '))
    return found
  }
  had('EVT-46', 'user.message')
  had('EVT-57', 'sandbox.created')
  const started = had('EVT-38', 'turn.started')
  trial.expect('INP-07', reply, 'the turn named by its frame', started?.text.includes(turnId) === true)
  const message = seen.find((frame) => typeOf(frame) === 'agent.message')
  if (message === undefined) trial.leave('EVT-40 EVT-68 EVT-69', 'the agent sent no message')
  else {
    trial.value('EVT-40', reply, 'type', typeOf(message), is('agent.message'))
    trial.expect('EVT-68', reply, 'a seq of agent.message', seqOf(message) !== null, message.text)
    trial.value('EVT-69', reply, 'payload.text', at(message.data, 'payload.text'), string)
  }
  const over = had('EVT-39', 'turn.ended')
  trial.expect('EVT-66', reply, 'turn.ended names its turn', over?.text.includes(turnId) === true)
  const payload = at(over?.data, 'payload')
  trial.expect(
    'EVT-65',
    reply,
    'no outcome in turn.ended',
    !/"(status|success|outcome)"/.test(JSON.stringify(payload) ?? ''),
    payload,
  )
}

const transient = writing(
  'deltas are transient',
  'EVT-15..17 EVT-19 EVT-20 EVT-63 EVT-64 EVT-67',
  async (trial) => {
    const id = await trial.session()
    await turnOf(trial, id, speech.think('of nothing'))
    const seen = await framesOf(trial, id, ended)
    const { reply } = trial.ground.feed as NonNullable<typeof trial.ground.feed>
    const passing = seen.filter((frame) => TRANSIENT.some((name) => name === typeOf(frame)))
    for (const frame of passing) {
      const name = typeOf(frame)
      trial.value('EVT-15', reply, `id: of ${name}`, frame.id, is(undefined))
      trial.value('EVT-16', reply, `seq of ${name}`, seqOf(frame), is(null))
      trial.value(name === 'agent.text' ? 'EVT-63' : 'EVT-64', reply, 'type', name, string)
      if (name === 'agent.text')
        trial.value('EVT-67', reply, 'payload.delta', at(frame.data, 'payload.delta'), string)
    }
    const all = seen.filter((frame) => seqOf(frame) === null).map(typeOf)
    if (all.length > 0) trial.note('EVT-20', [...new Set(all)].join(', '))
    await trial.remove(id)
  },
)

const failures = writing(
  'a failed turn has the status failed, and the session remains usable',
  'TRN-06 TRN-20 SES-06 SES-07 ITM-06 EVT-44 TRN-21',
  async (trial) => {
    const id = await trial.session()
    const { turn, reply } = await turnOf(trial, id, speech.fail())
    if (at(turn, 'status') !== 'failed') return trial.leave('TRN-06', 'the agent did not fail')
    trial.value('TRN-06', reply, 'status', at(turn, 'status'), is('failed'))
    trial.value('TRN-20', reply, 'error', at(turn, 'error'), object)
    trial.note('TRN-21', JSON.stringify(at(turn, 'error')))
    const session = await trial.until(`/v1/sessions/${id}`, ({ json }) => at(json, 'status') === 'failed')
    trial.is('SES-06', session, 'status', is('failed'))
    const seen = await framesOf(trial, id, ended)
    trial.expect(
      'EVT-44',
      trial.ground.feed?.reply ?? null,
      'a frame agent.error',
      seen.some((frame) => typeOf(frame) === 'agent.error'),
    )
    const { items: all, reply: list } = await itemsOf(trial, id)
    const error = all.find((item) => textAt(item, 'detail.event') === 'agent.error')
    trial.value('ITM-06', list, 'an error item', at(error, 'type'), string)
    const again = await turnOf(trial, id, speech.say('still here'))
    const fresh = textAt(again.turn, 'id') !== textAt(turn, 'id')
    trial.expect('SES-07', again.reply, 'a turn after the failed one', fresh)
    await trial.remove(id)
  },
)

export const turnChecks: readonly Check[] = [turns, transient, failures]
