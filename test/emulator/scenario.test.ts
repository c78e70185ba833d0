import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { loadScenario, playTour, startEmulator } from '../../src/emulator/index.ts'
import { readLines } from '../../src/emulator/script/line.ts'
import { open, PROFILES, until } from './support.ts'

const SCENARIOS = new URL('../../config/scenarios/', import.meta.url).pathname
const TOUR = join(SCENARIOS, 'tour.yaml')

function scenarioFile(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'scenario-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'scenario.yaml')
  writeFileSync(file, text)
  return file
}

describe('the line language', () => {
  it.each([
    ['say Hello', { do: 'say', text: 'Hello' }],
    ['think Hmm', { do: 'think', text: 'Hmm' }],
    ['call f {"a":1}', { do: 'call', calls: [{ name: 'f', arguments: { a: 1 } }] }],
    ['call f', { do: 'call', calls: [{ name: 'f', arguments: {} }] }],
    ['call f {{last}}', { do: 'call', calls: [{ name: 'f', arguments: '{{last}}' }] }],
    [
      'call a {} & call b [2]',
      {
        do: 'call',
        calls: [
          { name: 'a', arguments: {} },
          { name: 'b', arguments: [2] },
        ],
      },
    ],
    ['shell ls -la', { do: 'shell', command: 'ls -la' }],
    ['write outputs/a.txt some text', { do: 'write', path: 'outputs/a.txt', content: 'some text' }],
    ['write outputs/big.bin 20MiB', { do: 'write_size', path: 'outputs/big.bin', bytes: 20_971_520 }],
    ['ask Which colour?', { do: 'ask', question: 'Which colour?' }],
    ['preview 8080', { do: 'preview', port: 8080 }],
    ['wait 2s', { do: 'wait', ms: 2000 }],
    ['collect 45s', { do: 'collect', ms: 45_000 }],
    ['fail out of disk', { do: 'fail', reason: 'out of disk' }],
    ['hang', { do: 'hang' }],
    ['cannot start no room', { do: 'cannot_start', reason: 'no room' }],
    ['burst 1000 400', { do: 'burst', count: 1000, bytes: 400 }],
    [
      'approve shell rm -rf build',
      { do: 'approve', line: 'shell rm -rf build', step: { do: 'shell', command: 'rm -rf build' } },
    ],
  ])('%s', (line, step) => expect(readLines(line)).toEqual([step]))

  it.each([
    'Hello there',
    'call me back',
    'call f {broken',
    'wait a minute',
    'hang on',
    'preview the page',
    'constructor',
    'approve approve say x',
    'burst out',
  ])('says back the line that is none: %s', (line) =>
    expect(readLines(line)).toEqual([{ do: 'say', text: line }]),
  )

  it('reads a megabyte of anything without trouble', () => {
    expect(readLines('approve '.repeat(130_000))).toHaveLength(1)
    expect(readLines('call '.repeat(200_000))).toHaveLength(1)
    expect(readLines('& call '.repeat(150_000))).toHaveLength(1)
  })
})

describe('scenario files', () => {
  it('every file that is shipped loads', () => {
    for (const file of readdirSync(SCENARIOS)) expect(loadScenario(join(SCENARIOS, file)).name).toBeTruthy()
  })

  it.each([
    ['sessions: 3', /name/],
    ['name: x\nsesions: []', /"sesions"; did you mean "sessions"/],
    ['name: x\nreplies:\n  - when: hi\n    steps: [dance]', /"dance" is no step/],
    ['name: x\nreplies:\n  - when: { pattern: "(" }\n    steps: [hang]', /no regular expression/],
    [
      'name: x\nsessions:\n  - title: t\n    messages: [hi]\n    resolve: [{ type: approval, answer: yes }]',
      /needs approved|string/,
    ],
    ['name: [', /scenario\.yaml/],
  ])('refuses %j and says why', async (text, why) => {
    const file = scenarioFile(text)
    expect(() => loadScenario(file)).toThrow(why)
    await expect(startEmulator({ scenario: file })).rejects.toThrow(file)
  })

  it('refuses a file that is not there', () =>
    expect(() => loadScenario('/nowhere.yaml')).toThrow('/nowhere.yaml'))

  it('the first reply that fits a message decides what the agent does; other messages are lines', async () => {
    const scenario = {
      name: 'x',
      replies: [
        { when: 'ORDER', steps: ['say about an order'] },
        { when: { pattern: '^hi$' }, steps: ['say hello', 'fail enough'] },
      ],
    }
    const bench = await open('a', { scenario })
    const said = async (text: string): Promise<unknown> => {
      const id = await bench.session({ input: bench.message(text) })
      await bench.settle(id)
      return (await bench.items(id))
        .filter((item) => item['role'] === 'assistant')
        .map((item) => item['content'])
    }
    expect(await said('Where is my order?')).toEqual(['about an order'])
    expect(await said('hi')).toEqual(['hello'])
    expect(await said('hi there')).toEqual(['hi there'])
  })
})

describe.each(PROFILES)('the tour, profile %s', (profile) => {
  it('plays every session over the public interface and counts what is to come of it', async () => {
    const bench = await open(profile, { scenario: TOUR })
    const lines: string[] = []
    const counts = await playTour({
      baseUrl: bench.emulator.baseUrl,
      token: bench.emulator.token,
      scenario: loadScenario(TOUR),
      tell: (line) => lines.push(line),
      lookEveryMs: 20,
    })
    expect(counts).toEqual({
      sessions: 8,
      messages: 8,
      turns: 7,
      calls: 3,
      approvals: 1,
      questions: 1,
      unstarted: 1,
    })
    const calls = await until(() => {
      const { actions } = bench.emulator.ledger()
      const found = actions.filter((action) => action.type === 'function_call')
      return found.length === 3 ? found : undefined
    })
    for (const { session_id, call_id } of calls) await bench.answer(session_id, { call_id, output: 'fine' })
    const ledger = await until(() => {
      const now = bench.emulator.ledger()
      return now.turns.length === 7 &&
        now.turns.every(({ artifacts }) => artifacts !== null && artifacts !== 'pending')
        ? now
        : undefined
    })
    expect(ledger.turns.filter(({ status }) => status === 'failed')).toHaveLength(1)
    expect(ledger.turns.filter(({ artifacts }) => artifacts === 'partial')).toHaveLength(1)
    expect(ledger.sessions.find(({ title }) => title === 'A run that cannot start')?.status).toBe('failed')
    expect(lines.length).toBeGreaterThan(16)
  })
})
