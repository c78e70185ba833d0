import { writing, type Check } from '../check.ts'
import { seqOf, typeOf, type Frame } from '../feed.ts'
import { at, is, kind, rowsOf, string, textAt } from '../kind.ts'
import { speech } from '../speech.ts'
import { framesOf, itemsOf, turnOf } from '../talk.ts'

const ended = (frames: readonly Frame[]): boolean => frames.some((frame) => typeOf(frame) === 'turn.ended')

const shells = writing(
  'a command of the agent leaves a call and a result',
  'GEN-03 ITM-13..16 EVT-19 EVT-41 EVT-42 EVT-70 EVT-71 TOO-34 TOO-39',
  async (trial) => {
    const id = await trial.session({ agent: { tools: [] } })
    await turnOf(trial, id, speech.shell('echo conform'))
    const seen = await framesOf(trial, id, ended)
    const { reply } = trial.ground.feed as NonNullable<typeof trial.ground.feed>
    const call = seen.find((frame) => typeOf(frame) === 'agent.tool_call')
    if (call === undefined) return trial.leave('ITM-14', 'the agent ran no command')
    trial.value(
      'EVT-41 EVT-70 GEN-03 TOO-34 TOO-39',
      reply,
      'payload.toolName',
      at(call.data, 'payload.toolName'),
      string,
    )
    trial.value(
      'EVT-71',
      reply,
      'payload.args',
      at(call.data, 'payload.args'),
      kind('there', (value) => value !== undefined),
    )
    const result = seen.some((frame) => typeOf(frame) === 'agent.tool_result')
    trial.expect('EVT-42', reply, 'a frame agent.tool_result', result, seen.map(typeOf).join(', '))
    const progress = seen.filter((frame) => typeOf(frame).includes('progress'))
    for (const frame of progress) trial.value('EVT-19', reply, 'seq of progress', seqOf(frame), is(null))
    const { items: all, reply: list } = await itemsOf(trial, id)
    const calls = all.filter((item) => textAt(item, 'type') === 'tool_call')
    const events = calls.map((item) => textAt(item, 'detail.event'))
    trial.expect('ITM-14', list, 'a call of item type tool_call', events.includes('agent.tool_call'), events)
    trial.expect(
      'ITM-15 ITM-16',
      list,
      'a result of item type tool_call',
      events.includes('agent.tool_result'),
      events,
    )
    const names = new Set(seen.map(typeOf))
    const strays = all.map((item) => textAt(item, 'detail.event')).filter((name) => !names.has(name))
    trial.expect('ITM-13', list, 'events of the stream', strays.length === 0, strays)
    await trial.remove(id)
  },
)

const pages = writing('a list returns twenty rows by default', 'LIM-04 LIM-03 LIM-65', async (trial) => {
  const id = await trial.session()
  const lines = Array.from({ length: 24 }, (_, index) => `say ${index}`).join('\n')
  await turnOf(trial, id, `Reply to each of the following lines with a message of its own.\n${lines}`)
  const path = `/v1/sessions/${id}/items`
  const all = await trial.get(path, { limit: '100' })
  if (rowsOf(all.json).length <= 20) return trial.leave('LIM-04', 'the agent did not write twenty items')
  const page = await trial.get(path)
  trial.value('LIM-04', page, 'rows of a page', rowsOf(page.json).length, is(20))
  trial.is('LIM-65', page, 'has_more', is(true))
  await trial.remove(id)
})

export const transcript: readonly Check[] = [shells, pages]
