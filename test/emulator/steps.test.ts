import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { PERSISTED_EVENTS } from '../../src/emulator/event.ts'
import { DEFAULT_SCENARIO } from '../../src/emulator/scenario/file.ts'
import { scriptFor } from '../../src/emulator/scenario/script.ts'
import { readStep } from '../../src/emulator/scenario/step.ts'
import { doing, outputs, payloads, said, talk } from '../contract/transcript.ts'
import { listen } from './listener.ts'
import { open, PROFILES, until } from './support.ts'

const SCENARIOS = new URL('../../config/scenarios/', import.meta.url).pathname

describe('steps of a scenario', () => {
  it.each([
    [{ say: 'Hello' }, 'say Hello'],
    [{ think: 'Hmm' }, 'think Hmm'],
    [{ call: { name: 'f', arguments: { a: 1 } } }, 'call f {"a":1}'],
    [{ call: { name: 'f' } }, 'call f'],
    [{ calls: [{ name: 'a' }, { name: 'b', arguments: [2] }] }, 'call a {} & call b [2]'],
    [{ shell: 'ls -la' }, 'shell ls -la'],
    [{ shell: { command: 'ls -la' } }, 'shell ls -la'],
    [{ write: { path: 'a.txt', content: 'some text' } }, 'write a.txt some text'],
    [{ write: { path: 'a.bin', bytes: 1024 } }, 'write a.bin 1KiB'],
    [{ approve: { shell: 'rm -rf build' } }, 'approve shell rm -rf build'],
    [{ approve: 'shell rm -rf build' }, 'approve shell rm -rf build'],
    [{ ask: 'Which colour?' }, 'ask Which colour?'],
    [{ preview: 8080 }, 'preview 8080'],
    [{ wait: '2s' }, 'wait 2s'],
    [{ collect: '45s' }, 'collect 45s'],
    [{ burst: { count: 1000, characters: 400 } }, 'burst 1000 400'],
    [{ fail: 'out of disk' }, 'fail out of disk'],
    [{ fail: { message: 'out of disk' } }, 'fail out of disk'],
    [{ hang: true as const }, 'hang'],
    [{ cannot_start: 'no room' }, 'cannot start no room'],
  ])('%j is the line "%s"', (step, line) => expect(readStep(step)).toEqual(readStep(line)))

  it('run in order, lines and steps mixed, and know what was said and called before', async () => {
    const steps = [
      'call find {"order":"42"}',
      { calls: [{ name: 'stock', arguments: { of: '{{calls.find}}' } }, { name: 'price' }] },
      'say {{calls.find}}, {{calls.stock}} at {{calls.price}}',
      { shell: { command: 'wc', output: '17 lines' } },
      { say: '{{last}} for "{{message}}" with: {{instructions}}; {{calls.unknown}}' },
    ]
    const bench = await open('a', { scenario: doing(steps) })
    const id = await bench.session({ agent: { instructions: 'Be brief.' } })
    await bench.send(id, 'tea, please')
    const answers: Record<string, string> = { find: 'TEA-01', stock: 'seven', price: 'four' }
    for (const expected of [
      [['find', { order: '42' }]],
      [
        ['stock', { of: 'TEA-01' }],
        ['price', {}],
      ],
    ] as const) {
      const actions = await until(async () => {
        const found = await bench.actions(id)
        return found[0]?.['name'] === expected[0][0] ? found : undefined
      })
      expect(actions.map((action) => [action['name'], action['arguments']])).toEqual(expected)
      for (const { call_id, name } of actions)
        await bench.answer(id, { call_id, output: answers[String(name)] })
    }
    await bench.reach(id, 'idle')
    expect(await said(bench, id)).toEqual([
      'TEA-01, seven at four',
      '17 lines for "tea, please" with: Be brief.; {{calls.unknown}}',
    ])
  })

  it('a command that fails, a file that is not there and a commit on the branch of the clone are read as such', async () => {
    const steps = [
      { shell: { command: 'make', output: 'no rule', exit_code: 2 } },
      { read: 'none.txt' },
      { read: 'README.md' },
      { commit: 'Tidy up' },
    ]
    const repositories = [{ full_name: 'tea/shop', branch: 'trunk', files: { 'README.md': '# Tea' } }]
    const bench = await open('a', { scenario: doing(steps, { deployment: { repositories } }) })
    const id = await bench.session({ environment: { repo: { full_name: 'tea/shop' } } })
    await talk(bench, id)
    const results = await payloads(bench, id, 'agent.tool_result')
    expect(results.map(({ output, is_error }) => [output, is_error])).toEqual([
      ['no rule', true],
      ['none.txt: no such file', true],
      ['# Tea', false],
      [expect.stringMatching(/^\[trunk .*\] Tidy up$/), false],
    ])
  })

  it.each(['../../etc/passwd', '/etc/passwd', '/workspace/../etc/passwd'])(
    'end the turn when they write or read outside the workspace: %s',
    async (path) => {
      for (const step of [{ write: { path, content: 'x' } }, { read: path }]) {
        const bench = await open('a', { scenario: doing([step, 'say not reached']) })
        const id = await bench.session()
        expect(await talk(bench, id)).toMatchObject({
          status: 'failed',
          error: { message: `${path} is outside the workspace` },
        })
        expect(await said(bench, id)).toEqual([])
      }
    },
  )

  it('end the turn when a text doubles until it is too long', async () => {
    const doubling = Array.from({ length: 40 }, () => 'shell echo {{last}}{{last}}')
    const bench = await open('a', { scenario: doing(['shell echo x', ...doubling]) })
    expect(await talk(bench, await bench.session())).toMatchObject({
      status: 'failed',
      error: { message: 'a step grew past 4194304 characters' },
    })
  })

  it('put faults in force and end them', async () => {
    const steps = [{ faults: { drop_streams: true, server_errors: 1 } }, 'say hello']
    const bench = await open('a', { scenario: doing(steps) })
    const stream = await listen(bench)
    const id = await bench.session({ input: bench.message('trouble') })
    await until(() => (stream.closed ? true : undefined))
    const statuses = [
      (await bench.call('GET', `/v1/sessions/${id}`)).status,
      (await bench.call('GET', `/v1/sessions/${id}`)).status,
    ]
    expect(statuses).toEqual([500, 200])
    const repaired = await open('a', { scenario: doing([{ faults: { server_errors: 9 } }, { faults: {} }]) })
    await talk(repaired, await repaired.session())
    expect(repaired.emulator.faults.get()).toEqual({})
  })

  it('a reply fits by phrase, pattern or instructions, and one without `when` fits all', async () => {
    const scenario = {
      name: 'x',
      replies: [
        { when: 'ORDER', steps: ['say about an order'] },
        { when: { pattern: '^hi$' }, steps: ['say hello', 'fail enough'] },
        { when: { instructions: 'pirate' }, steps: ['say Arr'] },
        { steps: ['say pardon?'] },
      ],
    }
    const bench = await open('a', { scenario })
    const answer = async (text: string, instructions = ''): Promise<unknown> => {
      const id = await bench.session({ agent: { instructions } })
      await talk(bench, id, text)
      return said(bench, id)
    }
    expect(await answer('Where is my order?')).toEqual(['about an order'])
    expect(await answer('hi')).toEqual(['hello'])
    expect(await answer('hi there', 'You are a Pirate.')).toEqual(['Arr'])
    expect(await answer('hi there')).toEqual(['pardon?'])
  })

  it('the agent repeats what is no step, and explains itself on "help"', async () => {
    const bench = await open('a')
    const id = await bench.session()
    await talk(bench, id, 'Good morning!')
    await talk(bench, id, 'Help')
    const [echo, help] = await said(bench, id)
    expect(echo).toBe('Good morning!')
    // Every line of the help that shows a step is one.
    const shown = String(help).split('\n').slice(2, -2)
    const example = (line: string) =>
      line
        .slice(0, 33)
        .trim()
        .replace('{JSON}', '{}')
        .replace('STEP', 'say x')
        .replace('PORT', '80')
        .replace('COUNT [CHARACTERS]', '2')
    const verbs = shown.map((line) => scriptFor(DEFAULT_SCENARIO, example(line), '').steps[0])
    expect(verbs.map((step) => step?.do)).toEqual([
      'say',
      'think',
      'call',
      'shell',
      'write',
      'approve',
      'ask',
      'preview',
      'wait',
      'collect',
      'burst',
      'fail',
      'hang',
      'cannot_start',
    ])
  })
})

describe.each(PROFILES)('the example scenario, profile %s', (profile) => {
  const scenario = join(SCENARIOS, 'example.yaml')

  it('does what its comments say', async () => {
    const bench = await open(profile, { scenario })
    const tools = [
      { type: 'mcp', name: 'tickets', url: 'https://tickets.example' },
      { type: 'mcp', name: 'billing', command: 'billing' },
    ]
    const id = await bench.session({ agent: { tools, instructions: 'Talk like a pirate' } })
    await talk(bench, id, 'Please open a ticket')
    await talk(bench, id, 'hello')
    expect(await said(bench, id)).toEqual(['Ticket T-1 is open.', 'Arr!'])
    expect(await payloads(bench, id, 'mcp.unavailable')).toEqual([
      expect.objectContaining({ server: 'billing', reason: 'connection refused' }),
    ])
    await talk(bench, id, 'report on tea')
    expect((await said(bench, id)).at(-1)).toBe('Found 17 orders.')
    const denied = await bench.session({
      agent: { permission_rules: [{ decision: 'deny', domain: 'prices.example' }] },
    })
    await talk(bench, denied, 'read the page')
    expect(await outputs(bench, denied)).toEqual([])
    const [made] = bench.emulator.ledger().sessions
    expect(made?.title).toBe('Made in the Console')
    expect((await talk(bench, id, 'break down'))['status']).toBe('failed')
  })

  it('uses every kind of step that there is', () => {
    const text = readFileSync(scenario, 'utf8')
    const verbs = Object.keys(STEP_KEYS)
    expect(verbs.filter((verb) => !new RegExp(`[-{] ${verb}:|- ${verb} `).test(text))).toEqual([])
  })
})

/** One of each, so that a new kind of step is missed here by the compiler. */
type Keys<T> = T extends T ? keyof T : never
const STEP_KEYS: Record<
  Exclude<Keys<Exclude<Parameters<typeof readStep>[0], string>>, 'collect' | 'burst'>,
  true
> = {
  say: true,
  think: true,
  call: true,
  calls: true,
  shell: true,
  read: true,
  write: true,
  serve: true,
  preview: true,
  commit: true,
  use: true,
  approve: true,
  ask: true,
  todos: true,
  compact: true,
  wait: true,
  hang: true,
  fail: true,
  cannot_start: true,
  faults: true,
}

describe.each(PROFILES)('what the agent and its workspace do, profile %s', (profile) => {
  it('causes every event name of the interface', async () => {
    const steps = [
      'think Hmm',
      'say Hello',
      { todos: [{ text: 'look', done: true }] },
      { compact: 40 },
      'shell ls',
      'write outputs/a.txt hi',
      'preview 8080',
      'call f {}',
      'approve shell rm -rf build',
      'ask Which colour?',
      'fail enough',
    ]
    const scenario = { name: 'all', replies: [{ when: 'everything', steps }] }
    const bench = await open(profile, { scenario })
    const stream = await listen(bench)
    const tools = [{ type: 'mcp', name: 'gone', url: 'https://gone.invalid' }]
    const id = await bench.session({ agent: { tools } })
    await bench.send(id, 'everything')
    const [call] = await bench.actions(id)
    await bench.send(id, 'say next')
    await bench.answer(id, { call_id: call?.['call_id'], output: 'x' })
    for (const verdict of [{ approved: true }, { answer: 'blue' }]) {
      const wanted = 'approved' in verdict ? 'approval' : 'question'
      const action = await until(async () => {
        const [first] = await bench.actions(id)
        return first?.['type'] === wanted ? first : undefined
      })
      bench.emulator.resolveAction(String(action['call_id']), verdict)
    }
    await bench.reach(id, 'idle')
    await bench.emulator.advance(6 * 60_000)
    await talk(bench, id, 'say awake')
    await bench.emulator.advance(6 * 60_000)
    bench.emulator.faults.set({ fail_recoveries: 1 })
    await talk(bench, id, 'say again')
    expect(new Set(bench.events(id))).toEqual(new Set(PERSISTED_EVENTS))
    await until(() =>
      stream.frames.some(({ event }) => event === 'workspace.recovery_failed') ? true : undefined,
    )
    const transient = stream.frames.filter(({ id: seq }) => seq === undefined).map(({ event }) => event)
    expect(new Set(transient)).toEqual(new Set(bench.details.stream.transients))
  })
})
