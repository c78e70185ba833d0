import { readFileSync } from 'node:fs'
import path from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { folderWith } from '../config/folder.ts'
import { schemaDocument } from '../config/schema.ts'
import { cli, start } from './process.ts'

const CLI = path.resolve(import.meta.dirname, '../../src/cli')

/** Packages that importing these files of the command line loads at once. */
function packagesOf(...files: string[]): string[] {
  const packages = new Set<string>()
  const seen = new Set<string>()
  const visit = (file: string): void => {
    if (seen.has(file)) return
    seen.add(file)
    const text = readFileSync(file, 'utf8').replaceAll(/import type [^;]*? from '[^']+'/g, '')
    for (const [, from = ''] of text.matchAll(/^(?:import|export)\b[^'=()]*? from '([^']+)'$/gm)) {
      if (from.startsWith('.')) visit(path.resolve(path.dirname(file), from))
      else if (!from.startsWith('node:')) packages.add(from)
    }
  }
  for (const file of files) visit(path.join(CLI, file))
  return [...packages].sort()
}

describe('the command line', () => {
  test('imports one package before it knows the command, so that help is there at once', () => {
    expect(packagesOf('program.ts', 'terminal.ts')).toEqual(['commander'])
  })

  test.each([
    'completion',
    'config',
    'deliveries',
    'delivery',
    'events',
    'handlers',
    'init',
    'lists',
    'replay',
    'status',
    'trigger',
  ])('%s needs no package before its first output', (command) => {
    expect(packagesOf(`${command}.ts`).filter((name) => name !== 'commander')).toEqual([])
  })

  test.each([
    [['--help']],
    [['--version']],
    [['deliveries', '--help']],
    [['config', 'schema']],
    [['completion', 'bash']],
    [['status', '--url', 'http://127.0.0.1:9']],
    [['init', '/nowhere/sidecar.yaml']],
  ])('%j loads one package, also indirectly', async (args) => {
    const probe = `import { registerHooks } from 'node:module'
      const loaded = new Set()
      registerHooks({ resolve(name, context, next) {
        const found = next(name, context)
        const inside = /.*\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(found.url)
        if (inside !== null) loaded.add(inside[1])
        return found
      } })
      process.on('exit', () => console.error('\\nloaded', [...loaded].join(' ')))`
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(probe)}` }
    const { err } = await start(args, { env, fromSource: true }).ended
    expect(err).toContain('\nloaded commander\n')
  })

  test('explains itself', async () => {
    const { code, out, err } = await cli(['--help'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    for (const word of [
      'dev',
      'run',
      'emulate',
      'check',
      'config',
      'status',
      'deliveries',
      'replay',
      'Examples:',
    ]) {
      expect(out).toContain(word)
    }
    expect((await cli(['--version'])).out).toMatch(/^\d+\.\d+\.\d+\n$/)
  })

  test.each([
    [['rnu'], "unknown command 'rnu'\n  fix: use run\n"],
    [['completion', 'tcsh'], "argument 'shell' does not accept 'tcsh'\n  fix: use one of bash, zsh, fish\n"],
    [['trigger', 'turn.settled'], "option '--handler' is required"],
    [['trigger', '--handler', 'app'], "argument 'type' is missing"],
    [['handlers', 'puase', 'app'], "unknown command 'puase'\n  fix: use pause\n"],
    [['config', 'pritn'], "unknown command 'pritn'\n  fix: use print\n"],
    [['--onec'], "unknown option '--onec'\n  fix: use --once\n"],
    [['run', '--confg', 'x'], "unknown option '--confg'\n  fix: use --config\n"],
    [
      ['run'],
      'sidecar.yaml does not exist\n  fix: write one with "session-sidecar init", or name another file with -c',
    ],
    [['run', '-c'], "option '-c, --config <file>' needs a value"],
    [['rum', 'x'], "unknown command 'rum'\n  fix: use run\n"],
    [['xyz'], 'fix: "session-sidecar --help" lists the commands\n'],
    [['status', '--admin-token', 'x'], 'fix: "session-sidecar status --help" lists the options\n'],
    [
      ['config', 'schema', 'a', 'b'],
      'too many arguments: a, b\n  fix: "session-sidecar config schema --help" shows how it is used\n',
    ],
    [
      ['deliveries', 'show'],
      'argument \'id\' is missing\n  fix: "session-sidecar deliveries show --help" shows how it is used\n',
    ],
    [['dev', '--once', '--crash'], "cannot be used with option '--once'\n  fix: remove one of the two\n"],
    [['run', '-c', '/nowhere/sidecar.yaml'], '/nowhere/sidecar.yaml does not exist'],
    [['events', '--limit', 'all'], 'A whole number from 1 to 100000 is expected.'],
    [
      ['deliveries', '--status', 'lost'],
      "option '--status <status>' does not accept 'lost'\n  fix: use one of pending, delivered, dead\n",
    ],
    [['deliveries', 'retry'], 'give either the id of a delivery or --dead'],
    [['deliveries', 'retry', 'dlv_1', '--dead'], 'give either the id of a delivery or --dead'],
    [['deliveries', 'retry', '--dead', '--since', '99999999999d'], 'A time such as 2026-11-21T05:00:00Z'],
    [['deliveries', 'retry', 'dlv_1', '--dry-run'], '--handler, --since and --dry-run need --dead'],
    [['replay', '--handler', 'app'], "option '--from' is required"],
    [['replay', '--handler', 'app', '--from', 'yesterday'], 'a duration ago such as 2h, is expected'],
    [['emulate', '--listen', '4010'], 'HOST:PORT is expected'],
    [['emulate', '--open-details', 'c'], 'fix: use one of a, b\n'],
    [['emulate', '--scenario', '/nowhere/tour.yaml'], '/nowhere/tour.yaml'],
    [['--once', '--scenario', '/nowhere/tour.yaml'], '/nowhere/tour.yaml'],
    [['status', '--url', 'localhost'], '"localhost" is not an http address'],
    [['status', '--token-file', '/nowhere/token'], '/nowhere/token does not exist'],
  ])('ends %j with code 2 and says why', async (args, message) => {
    const { code, out, err } = await cli(args)
    expect(err).toContain(message)
    expect(err).not.toMatch(/\n {4}at /)
    expect({ code, out }).toEqual({ code: 2, out: '' })
  })

  test('prints all faults of a configuration at once, each with its position', async () => {
    const folder = await folderWith({
      'sidecar.yaml': 'service:\n  base_url: nowhere\n  tokn: x\nstrem: {}\n',
    })
    const file = `${folder}/sidecar.yaml`
    for (const command of [['run'], ['check'], ['config', 'print']]) {
      const { code, out, err } = await cli([...command, '-c', file])
      expect({ code, out }).toEqual({ code: 2, out: '' })
      expect(err.split('\n')).toEqual([
        `error: ${file}:1:1: service.token: is required: the access token, or token_file with its path`,
        `error: ${file}:2:13: service.base_url: must be an http or https address`,
        `error: ${file}:3:3: service.tokn: unknown key, did you mean "token"?`,
        `error: ${file}:4:1: strem: unknown key, did you mean "stream"?`,
        '4 faults',
        '',
      ])
    }
  })

  test('says which Node it needs when it is started by an older one', async () => {
    const old = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.1.0' } })`
    const { code, err } = await cli(['status'], {
      NODE_OPTIONS: `--import="data:text/javascript,${encodeURIComponent(old)}"`,
    })
    expect(code).toBe(2)
    expect(err).toMatch(
      /^error: session-sidecar needs Node 24 or newer; this is v\S+ \(\/\S+\)\n {2}fix: install Node 24 /,
    )
  })

  test('is plain in a pipe, and coloured where it is asked to be', async () => {
    expect((await cli(['rnu'])).err).not.toContain('\u001b[')
    expect((await cli(['rnu'], { FORCE_COLOR: '1' })).err).toContain('\u001b[')
    expect((await cli(['rnu'], { FORCE_COLOR: '1', NO_COLOR: '1' })).err).not.toContain('\u001b[')
  })
})

describe('config', () => {
  test('schema prints a JSON Schema', async () => {
    const { code, out } = await cli(['config', 'schema'])
    expect(code).toBe(0)
    const schema = JSON.parse(out) as Record<string, unknown>
    expect(schema['$schema']).toBe('https://json-schema.org/draft/2020-12/schema')
    expect(new Ajv2020({ strict: false }).validateSchema(schema)).toBe(true)
    // `npm run schema:config` writes it anew.
    expect(schema).toEqual(schemaDocument())
  })

  test('print shows the effective configuration, secrets hidden, warnings beside', async () => {
    const folder = await folderWith({
      'sidecar.yaml':
        'service: { base_url: "https://a.b", token_file: token }\nadmin: { token: "${ADMIN}", listen: "0.0.0.0:1" }',
      token: 'svc_pat_file',
    })
    const { code, out, err } = await cli(['config', 'print', '-c', `${folder}/sidecar.yaml`], {
      ADMIN: 'a-very-secret-token',
      SIDECAR_POLLING__INTERVAL: '3s',
    })
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(parse(out)).toMatchObject({
      service: { token_file: 'token' },
      polling: { interval: '3s', sweep: '15m' },
      admin: { token: '[redacted]' },
    })
    expect(out).not.toContain('a-very-secret-token')
    expect(out).not.toContain('svc_pat_file')
    const json = await cli(['config', 'print', '--json', '-c', `${folder}/sidecar.yaml`], { ADMIN: 'x' })
    expect(JSON.parse(json.out)).toMatchObject({ admin: { token: '[redacted]' } })
    expect(json.err).toContain('admin.token: has fewer than 16 characters and can be guessed')
    const warned = await cli(['config', 'print', '-c', `${folder}/sidecar.yaml`], { ADMIN: '' })
    expect(warned.code).toBe(0)
    expect(warned.err).toContain('warning: ')
  })
})
