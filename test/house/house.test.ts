import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'

const SRC = resolve(import.meta.dirname, '../../src')

interface Source {
  /** Below src, with slashes. */
  path: string
  part: string
  text: string
  imports: string[]
}

/** Who may import whom. A part may always import itself. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  core: [],
  config: ['core'],
  service: ['core'],
  store: ['core'],
  system: ['core'],
  library: ['core'],
  client: ['core', 'service', 'system'],
  source: ['core'],
  intake: ['core'],
  deliver: ['core'],
  tools: ['core'],
  admin: ['core'],
  emulator: ['core/signature.ts'],
  // A reading of the interface of its own: it shares no mistake with the client or the emulator.
  conform: ['core/errors.ts', 'core/json.ts', 'core/ports.ts', 'core/retry-after.ts', 'core/signature.ts'],
  sidecar: [
    'core',
    'config',
    'service',
    'store',
    'system',
    'library',
    'source',
    'intake',
    'deliver',
    'tools',
    'admin',
  ],
  index: ['core', 'config', 'library', 'sidecar'],
  cli: [
    'core',
    'config',
    'service',
    'system',
    'store',
    'library',
    'sidecar',
    'index',
    'emulator',
    'admin',
    'conform',
  ],
  main: ['cli', 'core'],
}

/** Parts into which time, chance and the network come through ports alone. */
const PURE = [
  'core',
  'intake',
  'deliver',
  'tools',
  'source',
  'service',
  'store',
  'client',
  'sidecar/engine.ts',
  'admin/relay/frame.ts',
  'admin/relay/hub.ts',
  'admin/relay/order.ts',
  'admin/relay/replay.ts',
]

/** What reaches the outside by itself. `new Date(ms)` only formats. */
const REACHES_OUT: readonly [RegExp, string][] = [
  [/\bDate\.now\(|\bnew Date\(\s*\)|\bperformance\.now\(/, 'reads the time'],
  [/\bMath\.random\(|\brandomBytes\(|\brandomUUID\(|\brandomInt\(/, 'draws a chance'],
  [/(?<![.\w])(setTimeout|setInterval|setImmediate)\(|AbortSignal\.timeout\(/, 'sets a timer'],
  [/\bprocess\.(on|once|exit|env)\b/, 'touches the process'],
  [
    /from '(node:)?(net|http|https|tls|dgram|dns|timers|timers\/promises|child_process|undici|fastify)'/,
    'opens sockets',
  ],
  [/(?<![.\w])fetch\(/, 'opens sockets'],
]

function sources(): Source[] {
  return readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => {
      const text = readFileSync(join(SRC, name), 'utf8')
      const path = name.replaceAll('\\', '/')
      const imports = [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map((match) =>
        relative(SRC, resolve(SRC, name, '..', match[1] ?? '')).replaceAll('\\', '/'),
      )
      return { path, part: partOf(path), text, imports }
    })
}

function partOf(path: string): string {
  const [first = ''] = path.split('/')
  return first.replace(/\.ts$/, '')
}

/** Comments may speak of what code may not do. */
function code(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|\s)\/\/.*$/gm, '')
}

describe('the house', () => {
  const all = sources()

  it('has sources to look at', () => {
    expect(all.length).toBeGreaterThan(60)
  })

  it('imports only downwards', () => {
    const wrong = all.flatMap(({ path, part, imports }) =>
      imports
        .filter((target) => partOf(target) !== part)
        .filter(
          (target) =>
            !(MAY_IMPORT[part] ?? []).some((allowed) => target === allowed || partOf(target) === allowed),
        )
        .map((target) => `${path} imports ${target}`),
    )
    expect(wrong).toEqual([])
  })

  it('lets time, chance and the network in through ports alone', () => {
    const wrong = all
      .filter(({ path, part }) => PURE.includes(part) || PURE.includes(path))
      .flatMap(({ path, text }) =>
        REACHES_OUT.filter(([pattern]) => pattern.test(code(text))).map(([, what]) => `${path} ${what}`),
      )
    expect(wrong).toEqual([])
  })

  it('names no machine and no tool of a workplace', () => {
    const words = new RegExp(['', 'work', ''].join('/'))
    expect(all.filter(({ text }) => words.test(text)).map(({ path }) => path)).toEqual([])
  })

  it('keeps every file to one noun: 300 lines at the most', () => {
    const long = all
      .map(({ path, text }) => ({ path, lines: text.split('\n').length }))
      .filter(({ lines }) => lines > 301)
    expect(long).toEqual([])
  })
})
