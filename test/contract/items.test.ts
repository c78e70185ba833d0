import { describe, expect, it } from 'vitest'
import { listen } from '../emulator/listener.ts'
import { open, PROFILES, rowsOf, type Fields } from '../emulator/support.ts'
import { doing, talk } from './transcript.ts'

const eventOf = (item: Fields): unknown => (item['detail'] as Fields)['event']

describe.each(PROFILES)('items, profile %s', (profile) => {
  it('ITM-01 ITM-03 ITM-04 ITM-05 ITM-09 ITM-10 ITM-11 ITM-12 an item has every field', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const before = bench.emulator.now()
    await talk(bench, id, 'say hello')
    const [first, ...rest] = await bench.items(id)
    expect(first).toEqual({
      object: 'item',
      id: expect.any(String),
      session_id: id,
      type: 'message',
      created_at: expect.any(Number),
      role: 'user',
      content: 'say hello',
      detail: expect.objectContaining({ event: 'user.message' }),
    })
    expect(Number(first?.['created_at'])).toBeGreaterThanOrEqual(before)
    expect(rest.map(({ type, role, content }) => [type, role, content])).toEqual([
      ['message', profile === 'a' ? 'assistant' : 'agent', 'hello'],
    ])
  })

  it('ITM-02 is there for good: after a pause, and after the workspace is gone', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await talk(bench, id, 'say hello\nshell ls')
    const items = await bench.items(id)
    await bench.emulator.advance(6 * 60_000)
    expect(await bench.items(id)).toEqual(items)
    await bench.send(id, 'hang')
    await bench.emulator.advance(2 * 3_600_000)
    await bench.reach(id, 'failed')
    expect((await bench.items(id)).slice(0, items.length)).toEqual(items)
  })

  it('ITM-06 ITM-07 ITM-08 errors, lost servers and everything else have item types of the profile', async () => {
    const steps = [
      'say hello',
      'shell ls',
      { todos: [{ text: 'look' }] },
      { compact: 12 },
      'write outputs/a.txt hi',
      'preview 8080',
      'fail out of disk',
    ]
    const bench = await open(profile, { scenario: doing(steps) })
    const tools = [{ type: 'mcp', name: 'tickets', url: 'https://tickets.invalid' }]
    const id = await bench.session({ agent: { tools } })
    await talk(bench, id)
    await bench.settle(id)
    const types = new Map((await bench.items(id)).map((item) => [eventOf(item), item['type']]))
    const known = new Map<unknown, unknown>([
      ['user.message', 'message'],
      ['agent.message', 'message'],
      ['agent.tool_call', 'tool_call'],
      ['agent.tool_result', 'tool_call'],
      ['mcp.unavailable', 'mcp_unavailable'],
    ])
    const own: [string, string][] =
      profile === 'a'
        ? [
            ['agent.error', 'error'],
            ['agent.todos', 'todos'],
            ['agent.compaction', 'compaction'],
            ['file.changed', 'file'],
            ['preview.ready', 'preview'],
            ['artifact.created', 'artifact'],
          ]
        : [
            ['agent.error', 'failure'],
            ['agent.todos', 'plan'],
            ['agent.compaction', 'summary'],
            ['file.changed', 'file_change'],
            ['preview.ready', 'service'],
            ['artifact.created', 'output'],
          ]
    expect(types).toEqual(new Map([...known, ...own]))
  })

  it('ITM-13 detail.event is the name that the stream gives the same event', async () => {
    const bench = await open(profile)
    const stream = await listen(bench)
    const id = await bench.session({ agent: { approval_mode: 'read_only' } })
    await talk(bench, id, 'think Hmm\nsay hello\nshell ls\nsay bye')
    await stream.hear('turn.ended')
    const heard = stream.frames.filter(({ id: seq }) => seq !== undefined).map(({ event }) => event)
    const items = (await bench.items(id)).map(eventOf)
    expect(items).toEqual(['user.message', 'agent.message', 'approval.resolved', 'agent.message'])
    expect(heard.filter((event) => items.includes(event))).toEqual(items)
  })

  it('ITM-14 ITM-15 ITM-16 a call and its result are both tool_call; detail.event distinguishes them', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'shell echo hi\ncall f {}')
    const [action] = await bench.actions(id)
    await bench.answer(id, { call_id: action?.['call_id'], output: 'done' })
    await bench.settle(id)
    const calls = (await bench.items(id)).filter(({ type }) => type === 'tool_call')
    expect(calls.map((item) => [eventOf(item), item['content']])).toEqual([
      ['agent.tool_call', expect.stringContaining('shell')],
      ['agent.tool_result', 'hi'],
      ['agent.tool_call', expect.stringContaining('"f"')],
      ['agent.tool_result', 'done'],
    ])
  })

  it('ITM-17 LIM-66 pages through a long transcript with limit, order and after', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await talk(bench, id, 'burst 250 20')
    const seen: unknown[] = []
    for (let query = '?order=asc&limit=100'; ;) {
      const { body } = await bench.call('GET', `/v1/sessions/${id}/items${query}`)
      seen.push(...rowsOf(body).map((item) => item['id']))
      if (body['has_more'] !== true) break
      query = `?order=asc&limit=100&after=${String(body['last_id'])}`
    }
    expect(new Set(seen).size).toBe(251)
    const latest = await bench.call('GET', `/v1/sessions/${id}/items?limit=2`)
    expect(rowsOf(latest.body).map((item) => item['id'])).toEqual(seen.toReversed().slice(0, 2))
    const stray = await bench.call('GET', `/v1/sessions/${id}/items?after=item_0000000000000000ff`)
    expect(stray.body).toMatchObject({ data: [], has_more: false })
    expect((await bench.call('GET', `/v1/sessions/${id}/items?role=user`)).status).toBe(400)
  })
})
