import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { loadScenario, playTour, startEmulator } from '../../src/emulator/index.ts'
import { readLines } from '../../src/emulator/scenario/line.ts'
import { group } from '../readme/document.ts'
import { SCHEMA_FILE, schemaDocument } from './scenario-schema.ts'
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

/** What is wrong with a file, each without the file's name. */
function faultsOf(file: string): string[] {
  try {
    loadScenario(file)
  } catch (error) {
    return (error as Error).message.split('\n').map((line) => line.replace(`${file}:`, ''))
  }
  return []
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
  ])('repeats a line that is no step: %s', (line) =>
    expect(readLines(line)).toEqual([{ do: 'say', text: line }]),
  )

  it('reads a megabyte of anything without trouble', () => {
    expect(readLines('approve '.repeat(130_000))).toHaveLength(1)
    expect(readLines('call '.repeat(200_000))).toHaveLength(1)
    expect(readLines('& call '.repeat(150_000))).toHaveLength(1)
  })
})

describe('scenario files', () => {
  const shipped = readdirSync(SCENARIOS).filter((name) => name.endsWith('.yaml'))

  it.each(shipped)('%s loads, and names its schema for editors', (name) => {
    const file = join(SCENARIOS, name)
    expect(loadScenario(file).name).toBeTruthy()
    expect(readFileSync(file, 'utf8')).toMatch(/^# yaml-language-server: \$schema=\.\/schema\.json\n/)
  })

  it('the scenario of src/emulator/README.md loads', () => {
    const [shown] = group('scenario')
    expect(loadScenario(scenarioFile(shown?.text ?? '')).name).toBe('orders')
  })

  it('schema.json is the schema that they are checked with (npm run schema:scenario writes it)', () => {
    expect(JSON.parse(readFileSync(SCHEMA_FILE, 'utf8'))).toEqual(schemaDocument())
  })

  it('every fault is reported at once, with its line and the right form', () => {
    const file = scenarioFile(`name: x
replies:
  - when: hi
    steps:
      - dance
      - sya: hello
      - say: 3
      - { say: a, think: b }
      - wait: soon
      - call: { nmae: f }
      - approve: { shel: ls }
      - shell: { comand: ls }
  - when: { pattern: '(' }
    step: [hang]
sessions:
  - title: t
    messages: [hi]
    resolve:
      - { type: approval, aproved: true }
    tools:
      - { type: function, name: f, timeout_seconds: 0 }
deployment:
  tools_off: [walk]
mcp_servers:
  - name: a.b
  - tools: [{ name: x, readonly: true }]
`)
    const faults = faultsOf(file)
    expect(faults).toEqual([
      '5: replies[0].steps[0]: "dance" is not a step; write "say dance" to say it',
      expect.stringMatching(/^6: replies\[0\]\.steps\[1\]\.sya: unknown key, did you mean "say"\?/),
      '7: replies[0].steps[2].say: must be string',
      '8: replies[0].steps[3]: is one step with several keys (say, think); make each a step',
      '9: replies[0].steps[4].wait: must be a duration such as 250ms, 30s, 5m, 2h or 7d',
      '10: replies[0].steps[5].call: needs "name"',
      expect.stringMatching(/^10: .*call\.nmae: unknown key, did you mean "name"\?/),
      expect.stringMatching(/^11: .*approve\.shel: unknown key, did you mean "shell"\?/),
      '12: replies[0].steps[7].shell: needs "command"',
      expect.stringMatching(/^12: .*shell\.comand: unknown key, did you mean "command"\?/),
      '13: replies[1]: needs "steps"',
      '13: replies[1].when.pattern: "(" is not a regular expression',
      expect.stringMatching(/^14: replies\[1\]\.step: unknown key, did you mean "steps"\?/),
      expect.stringMatching(/^19: .*resolve\[0\]\.aproved: unknown key, did you mean "approved"\?/),
      expect.stringMatching(/^21: .*timeout_seconds: must be >= 1$/),
      expect.stringMatching(/^23: deployment\.tools_off\[0\]: must be one of \["web_search"/),
      '25: mcp_servers[0].name: must be a name without a dot',
      '26: mcp_servers[1]: needs "name"',
      expect.stringMatching(/^26: .*readonly: unknown key, did you mean "read_only"\?/),
    ])
  })

  it('a fault below an alias is reported with its position', () => {
    const file = scenarioFile(
      'name: x\nreplies:\n  - when: a\n    steps: &steps\n      - sya: x\n  - when: b\n    steps: *steps\n',
    )
    expect(faultsOf(file).map((fault) => fault.split(':')[0])).toEqual(['5', '5'])
  })

  it.each([
    ['no name', 'sessions: []', ':1: needs "name"'],
    ['no mapping', '- a', ':1: must be object'],
    ['nothing', '', ':1: must be object'],
    ['broken YAML', 'name: x\nsessions: [', /:\d: .*flow/i],
    ['a key twice', 'name: x\nname: y', ':2: Map keys must be unique'],
    [
      'a verdict on the other thing',
      'name: x\nsessions:\n  - title: t\n    messages: [hi]\n    resolve: [{ type: approval, answer: no }]',
      /:5: .*resolves this approval with approved\n.*:5: .*answer: goes with no approval/,
    ],
  ])('refuses %s and says why', async (_what, text, why) => {
    const file = scenarioFile(text)
    expect(() => loadScenario(file)).toThrow(why)
    await expect(startEmulator({ scenario: file })).rejects.toThrow(file)
  })

  it('a map for a key, such as {{last}} without quotes, is reported and causes no warning of the runtime', () => {
    const warn = vi.spyOn(process, 'emitWarning')
    onTestFinished(() => warn.mockRestore())
    expect(faultsOf(scenarioFile('name: x\nreplies:\n  - steps: [{ say: {{last}} }]\n'))).not.toEqual([])
    expect(warn).not.toHaveBeenCalled()
  })

  it('refuses a file that is not there', () =>
    expect(() => loadScenario('/nowhere.yaml')).toThrow('/nowhere.yaml'))

  it('a scenario that a program makes is checked too', async () => {
    const scenario = { name: 'x', replies: [{ steps: ['dance'] }] }
    await expect(startEmulator({ scenario })).rejects.toThrow('replies[0].steps[0]: "dance" is not a step')
  })
})

describe.each(PROFILES)('the tour, profile %s', (profile) => {
  it('answers for a person only when the caller is ready', async () => {
    const bench = await open(profile, { scenario: TOUR })
    const { promise: ready, resolve } = Promise.withResolvers<void>()
    const asked: string[] = []
    const playing = playTour({
      baseUrl: bench.emulator.baseUrl,
      token: bench.emulator.token,
      scenario: {
        name: 'one',
        sessions: [
          { title: 'A', messages: ['ask Which colour?'], resolve: [{ type: 'question', answer: 'blue' }] },
        ],
      },
      lookEveryMs: 20,
      beforeAnswer(callId) {
        asked.push(callId)
        return ready
      },
    })
    await until(() => (asked.length > 0 ? true : undefined))
    expect(bench.emulator.ledger().actions).toMatchObject([{ call_id: asked[0], resolved_at: null }])
    resolve()
    await playing
    expect(bench.emulator.ledger().actions[0]?.resolved_at).not.toBeNull()
  })

  it('plays every session over the public interface and counts what is to come of it', async () => {
    const bench = await open(profile, { scenario: TOUR })
    const lines: string[] = []
    const counts = await playTour({
      baseUrl: bench.emulator.baseUrl,
      token: bench.emulator.token,
      scenario: loadScenario(TOUR),
      report: (line) => lines.push(line),
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
