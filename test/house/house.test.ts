import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import allowed from './allowed.json' with { type: 'json' }
import { circlesOfFiles, circlesOfFolders } from './circles.ts'
import { exportedValues, parameters, type Count } from './limits.ts'
import { optionFields } from './options.ts'
import { MAY_IMPORT, PURE, isUnder, partOf } from './table.ts'
import { parse, sourcesIn, type Source } from './source.ts'

const SRC = resolve(import.meta.dirname, '../../src')

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

/** Comments may speak of what code may not do. */
function code(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|\s)\/\/.*$/gm, '')
}

/**
 * Counts over the limit that `allowed.json` does not allow, and entries of the list that are not needed. The list holds
 * what was over the limit when the test came, and only shrinks: a commit that gets below an entry lowers or removes it.
 */
function notAsAllowed(
  counts: readonly Count[],
  limit: number,
  list: Readonly<Record<string, number>>,
): string[] {
  const over = new Map<string, number>()
  for (const { name, count } of counts)
    if (count > limit) over.set(name, Math.max(count, over.get(name) ?? 0))
  const tooMany = [...over].flatMap(([name, count]) => {
    const most = list[name] ?? limit
    return count > most ? `${name} has ${count}, at most ${most}` : []
  })
  const unneeded = Object.entries(list).flatMap(([name, most]) => {
    const count = over.get(name)
    if (count === undefined) return `${name} is not over ${limit} any more: remove it from allowed.json`
    return count < most ? `${name} has ${count}: write ${count} for ${most} in allowed.json` : []
  })
  return [...tooMany, ...unneeded]
}

/** A tree of files that are not there. */
function tree(files: Readonly<Record<string, string>>): Source[] {
  return Object.entries(files).map(([path, text]) => parse(path, text))
}

describe('the house', () => {
  const all = sourcesIn(SRC)

  it('has sources to look at', () => {
    expect(all.length).toBeGreaterThan(60)
  })

  it('has no file outside its parts', () => {
    expect(all.filter(({ path }) => partOf(path) === undefined).map(({ path }) => path)).toEqual([])
  })

  it('imports only downwards', () => {
    const wrong = all.flatMap(({ path, imports }) => {
      const part = partOf(path) ?? ''
      const open = [part, ...(MAY_IMPORT[part] ?? [])]
      return imports
        .filter((target) => partOf(target) !== part && !open.some((name) => isUnder(target, name)))
        .map((target) => `${path} imports ${target}`)
    })
    // The list only shrinks: it holds what the table forbade already when a part came to lie where it does.
    expect([...new Set(wrong)].toSorted()).toEqual(allowed.imports)
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
      .filter(({ path }) => PURE.some((name) => isUnder(path, name)))
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

describe('limits', () => {
  const all = sourcesIn(SRC)

  it('has at most 7 exported values in a file', () => {
    expect(notAsAllowed(exportedValues(all), 7, allowed.exportedValues)).toEqual([])
  })

  it('has at most 4 parameters in a function', () => {
    expect(notAsAllowed(parameters(all), 4, allowed.parameters)).toEqual([])
  })

  it('has at most 8 fields in an options object', () => {
    expect(notAsAllowed(optionFields(all), 8, allowed.optionFields)).toEqual([])
  })

  it('keeps no entry on its list that is not needed, or higher than needed', () => {
    const counts = [
      { name: 'new.ts', count: 8 },
      { name: 'grown.ts', count: 10 },
      { name: 'same.ts', count: 9 },
      { name: 'less.ts', count: 8 },
      { name: 'few.ts', count: 7 },
    ]
    const list = { 'grown.ts': 9, 'same.ts': 9, 'less.ts': 9, 'few.ts': 9, 'gone.ts': 9 }
    expect(notAsAllowed(counts, 7, list)).toEqual([
      'new.ts has 8, at most 7',
      'grown.ts has 10, at most 9',
      'less.ts has 8: write 8 for 9 in allowed.json',
      'few.ts is not over 7 any more: remove it from allowed.json',
      'gone.ts is not over 7 any more: remove it from allowed.json',
    ])
  })
})

describe('the checks of the house', () => {
  it('counts values, and no types, that a file exports', () => {
    const text = `export const { a, b: [c], ...d } = x, e = 1
      export function f(y: number): void
      export function f(y: string): void
      export function f(y: unknown): void {}
      export class G {}
      export enum H { I }
      export { i, type J, k as l } from './m.ts'
      export * as n from './n.ts'
      export default a
      export type O = 1
      export interface P {}
      export type { Q } from './q.ts'
      const r = 1`
    expect(exportedValues(tree({ 'a.ts': text }))).toEqual([{ name: 'a.ts', count: 11 }])
    expect(() => exportedValues(tree({ 'a.ts': `export * from './b.ts'` }))).toThrow(
      'name what export * exports',
    )
  })

  it('counts the parameters of whatever can be called', () => {
    const text = `function one(a, b) {}
      const two = (a, { b, c }, ...d) => a
      class Three { constructor(a) {} static four(a, b) {} #five = (a) => a; set six(a) {} }
      interface Seven { eight(a: 1, b: 2): void; nine: (a: 1) => void; (a: 1, b: 2, c: 3): void; new (): Seven }
      function ten(this: X, a) {}
      call({ eleven: (a) => a, twelve(a, b) {} }, (a, b, c, d, e) => a)`
    const counts = parameters(tree({ 'a.ts': text })).map(({ name, count }) => [name.slice(5), count])
    expect(counts).toEqual([
      ['one', 2],
      ['two', 3],
      ['Three.constructor', 1],
      ['Three.four', 2],
      ['Three.#five', 1],
      ['Three.six', 1],
      ['Seven.eight', 2],
      ['Seven.nine', 1],
      ['Seven', 3],
      ['Seven', 0],
      ['ten', 1],
      ['eleven', 1],
      ['twelve', 2],
      ['at the top', 5],
    ])
  })

  it('counts the fields of what a parameter may be', () => {
    const sources = tree({
      'a.ts': `import type { Far as Near } from './b.ts'
        interface Own extends Near, Pick<Near, 'x'> { a: 1; b?: 2; act(): void; run: () => void }
        type Alias = Own & { c: 1 }
        class Thing { d = 1 }
        function f(own: Own, alias: Alias, thing: Thing, list: Own[], ...rest: Own[]) {}
        const g = ({ a }: Omit<Own, 'a' | 'b'> = {}) => a
        interface Port { h(near: Readonly<Near> | null, key: string): void }
        class K { constructor(of: { a: 1; b: 2 }) {} }
        interface Never { a: 1 }`,
      'b.ts': `export type { Deep as Far } from './c.ts'`,
      'c.ts': `export interface Deep { x: 1; y: 2 }`,
    })
    const counts = Object.fromEntries(optionFields(sources).map(({ name, count }) => [name, count]))
    expect(counts).toEqual({
      'a.ts Own': 5,
      'a.ts Alias': 6,
      'a.ts g(0)': 3,
      'c.ts Deep': 2,
      'a.ts K.constructor(of)': 2,
    })
  })

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
