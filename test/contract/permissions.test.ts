import { describe, expect, it } from 'vitest'
import { codeOf, messageOf, open, PROFILES, type Bench, type Fields } from '../emulator/support.ts'
import { denials, doing, outputs, payloads, said, talk } from './transcript.ts'

const url = 'https://prices.example/today'
const fetchPrices = { use: { tool: 'web_fetch', arguments: { url }, output: 'prices' } }

/** A session with these settings, in which the agent has had its turn. */
async function played(bench: Bench, agent: Fields): Promise<string> {
  const id = await bench.session({ agent })
  await talk(bench, id)
  return id
}

describe.each(PROFILES)('what constrains the agent, profile %s', (profile) => {
  const asking = profile === 'a' ? 'ask' : 'confirm'

  it('SES-45 instructions shape what it does and hold nothing back', async () => {
    const scenario = {
      name: 'x',
      replies: [{ when: { pattern: '^hello', instructions: 'pirate' }, steps: [{ say: 'Arr!' }] }],
    }
    const bench = await open(profile, { scenario })
    const pirate = await bench.session({
      agent: { instructions: 'Talk like a Pirate. Never use the shell.' },
    })
    await talk(bench, pirate, 'hello there')
    await talk(bench, pirate, 'shell ls')
    expect(await said(bench, pirate)).toEqual(['Arr!'])
    expect(await outputs(bench, pirate)).toEqual(['(ran: ls)'])
    const plain = await bench.session()
    await talk(bench, plain, 'hello there')
    expect(await said(bench, plain)).toEqual(['hello there'])
  })

  it('SES-46 SES-49 SES-51 the approval mode does: nothing that changes, only with approval, or anything', async () => {
    const bench = await open(profile, { scenario: doing(['shell ls', 'say done']) })
    const readOnly = await played(bench, { approval_mode: 'read_only' })
    expect(await denials(bench, readOnly)).toEqual(['denied_read_only'])
    expect(await outputs(bench, readOnly)).toEqual([])
    const free = await played(bench, { approval_mode: profile === 'a' ? 'auto' : 'autonomous' })
    expect(await outputs(bench, free)).toEqual(['(ran: ls)'])
    const careful = await bench.session({ agent: { approval_mode: asking } })
    await bench.send(careful, 'go on')
    const [action] = await bench.actions(careful)
    expect(action?.['type']).toBe('approval')
    bench.emulator.resolveAction(String(action?.['call_id']), { approved: true })
    await bench.settle(careful)
    expect(await outputs(bench, careful)).toEqual(['(ran: ls)'])
  })

  it('SES-50 SES-51 refuses per_step, and the words of the other profile', async () => {
    const bench = await open(profile)
    for (const approval_mode of ['per_step', profile === 'a' ? 'confirm' : 'ask']) {
      const refused = await bench.call('POST', '/v1/sessions', { agent: { approval_mode } })
      expect([refused.status, codeOf(refused)]).toEqual([400, 'invalid_request'])
      expect(messageOf(refused)).toContain('agent.approval_mode')
    }
  })

  it('SES-47 SES-52 SES-54 SES-56 SES-57 SES-58 SES-59 a rule fits by tool, path, command and domain', async () => {
    const steps = ['shell git push', 'shell ls', 'write secret/key x', 'write a.txt x', fetchPrices]
    const bench = await open(profile, { scenario: doing(steps) })
    const blocked = async (rule: Fields) => {
      const id = await played(bench, { permission_rules: [{ decision: 'deny', ...rule }] })
      expect((await bench.read(id))['agent']).toMatchObject({
        permission_rules: [{ decision: 'deny', ...rule }],
      })
      return (await payloads(bench, id, 'approval.resolved')).map(({ name, code }) => [name, code])
    }
    const rule = 'denied_by_rule'
    expect(await blocked({ tool: 'shell' })).toEqual([
      ['shell', rule],
      ['shell', rule],
    ])
    expect(await blocked({ command: 'git *' })).toEqual([['shell', rule]])
    expect(await blocked({ path: 'secret/*' })).toEqual([['write', rule]])
    expect(await blocked({ domain: '*.example' })).toEqual([['web_fetch', rule]])
    expect(await blocked({ tool: 'write', command: 'git *' })).toEqual([])
    expect(await blocked({})).toHaveLength(5)
  })

  it('SES-53 SES-55 SES-61 SES-62 EVT-81 rules override the mode in both directions', async () => {
    const bench = await open(profile)
    const permission_rules = [
      { decision: 'allow', tool: 'shell', command: 'git *' },
      { decision: 'ask', tool: 'write', path: 'outputs/*' },
      { decision: 'deny', tool: 'preview' },
    ]
    const id = await bench.session({ agent: { approval_mode: 'read_only', permission_rules } })
    await bench.send(id, 'shell git status\nshell ls\npreview 8080\nwrite outputs/a.txt hi')
    const [action] = await bench.actions(id)
    expect(action?.['type']).toBe('approval')
    expect(await outputs(bench, id)).toEqual(['(ran: git status)'])
    expect(await denials(bench, id)).toEqual(['denied_read_only', 'denied_by_rule'])
    bench.emulator.resolveAction(String(action?.['call_id']), { approved: true })
    await bench.settle(id)
    expect(bench.emulator.ledger().turns[0]?.published).toEqual(['outputs/a.txt'])
    const free = await bench.session({ agent: { permission_rules: [{ decision: 'deny', tool: 'shell' }] } })
    await talk(bench, free, 'shell ls')
    expect(await denials(bench, free)).toEqual(['denied_by_rule'])
  })

  it.each([
    ['without a decision', { tool: 'shell' }],
    ['with an unknown decision', { decision: 'perhaps' }],
    ['with an unknown field', { decision: 'deny', host: 'x' }],
    ['with a field that is no string', { decision: 'deny', tool: 3 }],
  ])('SES-52 SES-60 refuses a rule %s', async (_what, rule) => {
    const bench = await open(profile)
    const body = { agent: { permission_rules: [rule] } }
    const id = await bench.session()
    for (const reply of [
      await bench.call('POST', '/v1/sessions', body),
      await bench.call('PATCH', `/v1/sessions/${id}`, body),
    ]) {
      expect([reply.status, codeOf(reply)]).toEqual([400, 'invalid_request'])
      expect(messageOf(reply)).toContain('agent.permission_rules.0')
    }
  })

  it('SES-48 SES-63 SES-64 GEN-16 under read_only an MCP tool needs the read-only hint of its server, whatever the rules say', async () => {
    const servers = [
      {
        name: 'tickets',
        tools: [
          { name: 'list', read_only: true, output: 'none' },
          { name: 'close' },
          { name: 'wipe', read_only: false },
        ],
      },
    ]
    const steps = ['list', 'close', 'wipe'].map((tool) => ({ use: { tool: `tickets.${tool}` } }))
    const bench = await open(profile, { scenario: doing(steps, { mcp_servers: servers }) })
    const agent = {
      approval_mode: 'read_only',
      tools: [{ type: 'mcp', name: 'tickets', url: 'https://tickets.example' }],
    }
    for (const permission_rules of [[], [{ decision: 'allow', tool: 'tickets.*' }]]) {
      const id = await played(bench, { ...agent, permission_rules })
      expect(await outputs(bench, id)).toEqual(['none'])
      expect((await payloads(bench, id, 'approval.resolved')).map(({ name, code }) => [name, code])).toEqual([
        ['tickets.close', 'denied_read_only'],
        ['tickets.wipe', 'denied_read_only'],
      ])
    }
    const denied = await played(bench, {
      ...agent,
      permission_rules: [{ decision: 'deny', tool: 'tickets.list' }],
    })
    expect((await denials(bench, denied))[0]).toBe('denied_by_rule')
    const free = await played(bench, { tools: agent.tools })
    expect(await outputs(bench, free)).toEqual([
      'none',
      '(tickets.close answered)',
      '(tickets.wipe answered)',
    ])
  })
})
