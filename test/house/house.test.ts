import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { circlesOfFiles, circlesOfFolders } from './circles.ts'
import { parse, sourcesIn } from './source.ts'

const SRC = resolve(import.meta.dirname, '../../src')

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

function partOf(path: string): string {
  const [first = ''] = path.split('/')
  return first.replace(/\.ts$/, '')
}

/** Comments may speak of what code may not do. */
function code(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|\s)\/\/.*$/gm, '')
}

describe('the house', () => {
  const all = sourcesIn(SRC)

  it('has sources to look at', () => {
    expect(all.length).toBeGreaterThan(60)
  })

  it('imports only downwards', () => {
    const wrong = all.flatMap(({ path, imports }) => {
      const part = partOf(path)
      return imports
        .filter((target) => partOf(target) !== part)
        .filter(
          (target) =>
            !(MAY_IMPORT[part] ?? []).some((allowed) => target === allowed || partOf(target) === allowed),
        )
        .map((target) => `${path} imports ${target}`)
    })
    expect(wrong).toEqual([])
  })

  it('imports files that are there', () => {
    const files = new Set(all.map(({ path }) => path))
    const modules = (target: string): boolean => /\.[jt]s$/.test(target) && !target.includes('/vendor/')
    const missing = all.flatMap(({ path, imports }) =>
      imports.filter((target) => modules(target) && !files.has(target)).map((target) => `${path}: ${target}`),
    )
    expect(missing).toEqual([])
  })

  it('has no circle of files, imports of types included', () => {
    expect(circlesOfFiles(all)).toEqual([])
  })

  it('has no circle of folders, nor of a folder and a file beside it', () => {
    expect(circlesOfFolders(all)).toEqual([])
  })

  it('lets time, chance and the network in through ports alone', () => {
    const wrong = all
      .filter(({ path }) => PURE.includes(partOf(path)) || PURE.includes(path))
      .flatMap(({ path, text }) =>
        REACHES_OUT.filter(([pattern]) => pattern.test(code(text))).map(([, what]) => `${path} ${what}`),
      )
    expect(wrong).toEqual([])
  })

  it('names no machine and no tool of a workplace', () => {
    const words = new RegExp(['', 'work', ''].join('/'))
    expect(all.filter(({ text }) => words.test(text)).map(({ path }) => path)).toEqual([])
  })
})

describe('the look at the house', () => {
  it('sees every way to name a file', () => {
    const { imports } = parse(
      'a/b/c.ts',
      `import './effect.ts'
       import { one, type Two } from '../two.ts'
       import type { Three } from '../../three.ts'
       export { four } from './four.ts'
       export type { Five } from './five.ts'
       export * as six from './six.ts'
       const seven = await import('./seven.ts')
       type Eight = import('./eight.ts').Eight
       type Nine = typeof import('./nine.ts')
       // import './comment.ts'
       const text = "import './text.ts'"
       import { join } from 'node:path'`,
    )
    expect(imports).toEqual([
      'a/b/effect.ts',
      'a/two.ts',
      'three.ts',
      ...['four', 'five', 'six', 'seven', 'eight', 'nine'].map((name) => `a/b/${name}.ts`),
    ])
  })

  it('finds circles of files by types, and of folders that no two files form', () => {
    const tree = (files: Record<string, string>): ReturnType<typeof parse>[] =>
      Object.entries(files).map(([path, text]) => parse(path, text))
    const files = tree({
      'a/1.ts': `import type { X } from '../b/2.ts'`,
      'b/2.ts': `export type X = import('../c.ts').Y`,
      'c.ts': `export type { Y } from './a/1.ts'`,
    })
    expect(circlesOfFiles(files)).toEqual([['a/1.ts', 'b/2.ts', 'c.ts']])
    const folders = tree({
      'a/x/1.ts': `import '../y/2.ts'`,
      'a/y/2.ts': '',
      'a/y/3.ts': `import '../x/4.ts'`,
      'a/x/4.ts': '',
    })
    expect(circlesOfFiles(folders)).toEqual([])
    expect(circlesOfFolders(folders)).toEqual([['a/x', 'a/y']])
    expect(circlesOfFolders(tree({ 'a/1.ts': `import './b/2.ts'`, 'a/b/2.ts': '' }))).toEqual([])
  })
})
