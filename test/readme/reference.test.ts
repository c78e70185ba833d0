import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { createMetrics } from '../../src/sidecar/admin/metrics.ts'
import { jsonSchema } from '../../src/sidecar/config/schema.ts'
import { STATE_TYPES } from '../../src/core/fact.ts'
import { isObject, parseJson } from '../../src/std/json.ts'
import { faultsSchema } from '../../src/emulator/fault.ts'
import { readVerb } from '../../src/emulator/scenario/line.ts'
import { createSidecar } from '../../src/index.ts'
import { cli } from '../cli/process.ts'
import { folderWith } from '../config/folder.ts'
import { blocks, generated, read, ROOT, rows, section, squeezed } from './document.ts'
import { configurationReference, faultsReference, metricsReference, routesReference } from './reference.ts'

/** `UPDATE=1 npm test -- test/readme/reference.test.ts && npm run format` writes them again. */
describe('the generated tables of the documents', () => {
  test('name every key of the configuration', () => {
    const schema = parseJson(JSON.stringify(jsonSchema()))
    if (!isObject(schema)) throw new Error('the schema is no object')
    const wanted = configurationReference(schema)
    expect(generated('configuration', wanted)).toBe(squeezed(wanted))
  })

  test('name every fault of the emulator', () => {
    const schema = parseJson(JSON.stringify(faultsSchema))
    if (!isObject(schema)) throw new Error('the schema is no object')
    const wanted = faultsReference(schema)
    expect(generated('faults', wanted)).toBe(squeezed(wanted))
  })

  test('name every metric', () => {
    const { registry } = createMetrics({
      build: { version: '0', configuration: '0f' },
      store: () => {
        throw new Error('nothing is scraped')
      },
      clock: { steady: () => 0 },
      log: silent,
      handlers: [],
      tools: [],
      tokenExpiresAt: () => null,
    })
    const wanted = metricsReference(registry)
    expect(generated('metrics', wanted)).toBe(squeezed(wanted))
  })

  test('name every admin route', async () => {
    const folder = await folderWith({})
    const sidecar = await createSidecar({
      // No program listens there: the admin listener does not depend on the service.
      config: {
        service: { base_url: 'http://127.0.0.1:9', token: 'svc_pat_unknown' },
        store: { url: `sqlite:${folder}/sidecar.db` },
        admin: { listen: '127.0.0.1:0' },
      },
      log: silent,
    })
    await sidecar.start()
    try {
      const response = await fetch(`http://127.0.0.1:${sidecar.address.admin?.port}/openapi.json`)
      const description = parseJson(await response.text())
      if (!isObject(description)) throw new Error('the description is no object')
      const wanted = routesReference(description)
      expect(generated('routes', wanted)).toBe(squeezed(wanted))
    } finally {
      await sidecar.stop()
    }
  })
})

describe('the written parts of the documents', () => {
  test('names every type of state fact', () => {
    const named = [...section('src/sidecar/README.md', 'Facts').matchAll(/^\| (.*?) \|/gm)].flatMap(
      ([, cell = '']) => cell.match(/[a-z]+\.[a-z_]+/g) ?? [],
    )
    expect(named.sort()).toEqual([...STATE_TYPES].sort())
  })

  test('names every command and no other', async () => {
    const { out } = await cli(['--help'])
    const commands = [...(out.split('Commands:')[1] ?? '').matchAll(/^ {2}(\w+)/gm)].map(
      ([, name = '']) => name,
    )
    const table = section('src/sidecar/README.md', 'Commands').split('| exit code |')[0] ?? ''
    const named = rows(table).flatMap(([cell = '']) => cell.match(/(?<=`)\w+/g) ?? [])
    expect([...new Set(named)].sort()).toEqual(commands.filter((name) => name !== 'help').sort())
  })

  test('has steps in its line language that are steps', () => {
    const steps = blocks().find(({ language }) => language === 'steps')
    const verbs = (steps?.text ?? '')
      .trim()
      .split('\n')
      .map((line) => readVerb(line))
    expect(verbs).not.toContain(undefined)
    expect(new Set(verbs.map((step) => step?.do)).size).toBe(15)
  })

  test('has JSON that is JSON', () => {
    const examples = blocks().filter(({ language }) => language === 'json')
    expect(examples.length).toBe(9)
    for (const { text } of examples) expect(() => JSON.parse(text) as unknown).not.toThrow()
  })

  test.each(rows(section('src/sidecar/README.md', 'Limits')))(
    'has the limit of the source: %s, %s',
    (_what, limit = '', where = '') => {
      const [file = '', name = ''] = [...where.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text)
      const declared = new RegExp(`const ${name} = ([0-9_ *]+)$`, 'm')
      const products = sources(file).flatMap((source) => declared.exec(source)?.[1] ?? [])
      expect(products).toHaveLength(1)
      const [product = ''] = products
      const value = product.split('*').reduce((sum, factor) => sum * Number(factor.replaceAll('_', '')), 1)
      expect(amount(limit)).toBe(value)
    },
  )

  test('describes every part of the source', () => {
    const table = read('src/README.md').split('## Who may import whom')[1]?.split('\n## ')[0] ?? ''
    const described = rows(table).flatMap(([cell = '']) => cell.match(/(?<=`)\w+/g) ?? [])
    const parts = readdirSync(path.join(ROOT, 'src')).filter(
      (name) => !['README.md', 'tsconfig.json'].includes(name),
    )
    expect(described.sort()).toEqual([...new Set(parts.map((name) => path.parse(name).name))].sort())
  })

  test('names only files and folders of the source that exist', () => {
    const text = read('src/README.md')
    // In code, and at the beginning of the lines of a list.
    const named = text.match(/(?<=`|^)[\w-]+\/[\w./-]*(?=`|\s|$)/gm) ?? []
    expect(named.length).toBeGreaterThan(120)
    const known = (name: string) =>
      existsSync(path.join(ROOT, /^(?:test|config)\//.test(name) ? '.' : 'src', name))
    expect(named.filter((name) => !known(name))).toEqual([])
  })
})

/** The text of a file of the source, or of every file in a folder. */
function sources(where: string): string[] {
  const files = where.endsWith('.ts')
    ? [where]
    : globSync(`${where}/**/*.ts`, { cwd: path.join(ROOT, 'src') })
  return files.map((file) => readFileSync(path.join(ROOT, 'src', file), 'utf8'))
}

const UNITS: Readonly<Record<string, number>> = { '': 1, s: 1000, KiB: 1024, MiB: 1024 ** 2 }

function amount(text: string): number {
  const [, number = '', unit = ''] = /^(\d+) ?(\w*)$/.exec(text) ?? []
  return Number(number) * (UNITS[unit] ?? Number.NaN)
}

const silent = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silent,
}
