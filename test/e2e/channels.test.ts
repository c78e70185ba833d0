import { describe, expect, test } from 'vitest'
import type { Event } from '../support/app.ts'
import { PROFILES } from './engines.ts'
import { assertWhole } from '../support/oracle.ts'
import { ALL_CHANNELS, Rig, type ChannelName } from '../support/rig.ts'
import { until } from '../support/until.ts'

const CONFIGURATIONS: readonly { name: string; channels: readonly ChannelName[] }[] = [
  { name: 'stream alone', channels: ['stream'] },
  { name: 'webhooks alone', channels: ['webhook'] },
  { name: 'polling alone', channels: ['poll'] },
  { name: 'all three', channels: ALL_CHANNELS },
]
/** Facts that every channel leads to; a status of a session may pass between two looks. */
const COMPARED = /^(turn|action|call)\.|^session\.created$/

describe.for(PROFILES)('channels (%s)', (details) => {
  // [fault tool-7]
  test('the same turns make the same facts under the same ids, whichever channel reports them', async () => {
    await using first = await Rig.open({ details, channels: ['stream'], tools: { later: {} } })
    await using stack = new AsyncDisposableStack()
    const rigs = [first]
    for (const { channels } of CONFIGURATIONS.slice(1)) {
      rigs.push(stack.use(await Rig.open({ beside: first, channels, tools: { later: {} } })))
    }
    // No sidecar's answer comes first: every tool defers the call, and another program answers it.
    for (const { app } of rigs) app.run = () => ({ status: 202 })
    const { client } = first
    await client.start('say Hello', 'write outputs/report.txt done')
    await client.start('fail out of disk')
    await client.start('cannot start the workspace is lost')
    await client.start('write outputs/large.bin 60MiB')
    const calling = await client.start('call later {"n":1} & call later {"n":2}', 'say {{last}}')
    const asking = await client.start('ask Which colour?')
    const hanging = await client.start('hang')
    const calls = await client.required(calling, 2)
    const [question] = await client.required(asking)
    for (const { app } of rigs) {
      await until('three required actions', () => typed(app.delivered(), 'action.required').length === 3)
      await until('two runs', () => app.runs.length === 2)
      await until('two turns under way', () => typed(app.delivered(), 'turn.started').length === 6)
    }
    for (const { call_id } of calls) await client.answer(calling, call_id, 'from elsewhere')
    first.emulator.resolveAction(question?.call_id ?? '', { answer: 'blue' })
    await client.cancel(hanging)

    for (const { app } of rigs) {
      await until('every turn settled', () => typed(app.delivered(), 'turn.settled').length === 6)
      await until('every action resolved', () => typed(app.delivered(), 'action.resolved').length === 3)
      await until('every call over', () => typed(app.delivered(), 'call.failed').length === 2)
    }
    const [expected, ...others] = rigs.map(({ app }) => idsOf(app.seen()))
    expect(typesOf(expected)).toEqual(
      new Map([
        ['session.created', 7],
        ['turn.started', 6],
        ['turn.completed', 4],
        ['turn.failed', 1],
        ['turn.ended', 1],
        ['turn.settled', 6],
        ['action.required', 3],
        ['action.resolved', 3],
        ['call.failed', 2],
      ]),
    )
    for (const other of others) expect(other).toEqual(expected)
  })

  test.for(CONFIGURATIONS)(
    '$name: every turn, action and call is delivered and answered, once',
    async ({ channels }) => {
      await using rig = await Rig.open({ details, channels, tools: { lookup_order: {}, second: {} } })
      const { client, app } = rig
      await client.start('say Hello', 'call lookup_order {"order_id":"42"}', 'say {{last}}')
      await client.start('call lookup_order {"n":1} & call second {"n":2}', 'write outputs/r.txt {{last}}')
      await client.start('fail out of disk')
      await client.start('write outputs/large.bin 60MiB')
      const approving = await client.start('approve shell rm -rf build')
      await client.start('cannot start no workspace')
      const [approval] = await client.required(approving)
      await rig.event('action.required', ({ data }) => data.action?.call_id === approval?.call_id)
      rig.emulator.resolveAction(approval?.call_id ?? '', { approved: true })

      await rig.event('turn.settled', ({ session_id }) => session_id === approving)
      await assertWhole(rig, {
        tools: ['lookup_order', 'second'],
        transcript: channels.includes('stream'),
      })
      // No peer failed, so nothing came twice; without the stream the transcript comes from the
      // items.
      const ids = app.callbacks.map(({ id }) => id)
      expect(new Set(ids).size).toBe(ids.length)
      const said = typed(app.delivered(), 'agent.message').map(({ data }) => textOf(data.payload))
      expect(new Set(said)).toEqual(new Set(['Hello', 'lookup_order says {"order_id":"42"}']))
      expect(said).toHaveLength(2)
    },
  )
})

function typed(events: readonly Event[], type: string): Event[] {
  return events.filter((event) => event.type === type)
}

function idsOf(events: readonly Event[]): string[] {
  return events
    .filter(({ type }) => COMPARED.test(type))
    .map(({ type, id }) => `${type} ${id}`)
    .toSorted()
}

function typesOf(ids: readonly string[] = []): Map<string, number> {
  const counts = new Map<string, number>()
  for (const entry of ids) {
    const [type = ''] = entry.split(' ')
    counts.set(type, (counts.get(type) ?? 0) + 1)
  }
  return counts
}

/** A frame's payload has the text; an item has it as its content. */
function textOf(payload: Record<string, unknown> | undefined): unknown {
  return payload?.['text'] ?? payload?.['content']
}
