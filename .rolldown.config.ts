import { cpSync, existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import path from 'node:path'
import { defineConfig, type ChunkingContext, type OutputChunk, type Plugin } from 'rolldown'

/**
 * Makes `dist` of `src`, after the compiler has put the declarations there. A start that loads six hundred small files takes
 * three times as long as one that loads forty, so what is published is a bundle, our dependencies with it. It is not
 * minified: a stack trace names our functions and shows their lines.
 */
const SOURCE = path.join(import.meta.dirname, 'src')
const DIST = process.env['DIST'] ?? path.join(import.meta.dirname, 'dist')
const FACES = ['index', 'client/index', 'emulator/index']
/** Files that the program reads beside its code. */
const READ = [
  'sidecar/store/sqlite/migrations',
  'sidecar/store/postgres/migrations',
  'sidecar/admin/console/web',
]
/** Has a binary of its own, is loaded where a person reads the log or a store is in PostgreSQL, or is the user's: installed beside us. */
const INSTALLED = ['better-sqlite3', 'pg', 'pino-pretty', '@opentelemetry/api']

/**
 * The few files that a start loads: each file costs as much as fifty kilobytes of code. A module goes to the first of
 * these of which a root imports it, dynamic imports apart; what none imports (the emulator, most commands) is split by rolldown.
 */
const CHUNKS: [string, ...string[]][] = [
  ['base', 'sidecar/store/error.ts', 'sidecar/config/listen.ts'],
  ['program', 'cli/program.ts'],
  ['settings', 'sidecar/config/load.ts'],
  ['sidecar', 'sidecar/sidecar.ts'],
  ['schema', 'sidecar/library/schema.ts'],
  ['library', 'index.ts'],
  ['client', 'system/http.ts', 'client/index.ts', 'client/service.ts'],
  ['start', 'sidecar/start.ts'],
]

function chunkOf(id: string, context: ChunkingContext): string | null {
  // What nearly all share, but for what loads modules of Node's: a command that only prints has no use for them.
  const shared = /\/src\/(std|core)\//.test(id)
  if (shared && ![...closure(id, context)].some((one) => one.startsWith('node:'))) return 'base'
  const found = CHUNKS.find(([, ...roots]) =>
    roots.some((root) => closure(path.join(SOURCE, root), context).has(id)),
  )
  return found?.[0] ?? null
}

export default defineConfig({
  input: Object.fromEntries(
    ['main.js', ...FACES.map((face) => `${face}.ts`)].map((file) => [
      file.slice(0, -3),
      path.join(SOURCE, file),
    ]),
  ),
  platform: 'node',
  // prom-client asks for the API of OpenTelemetry as well, and must not need the user's.
  external: (id, importer) => INSTALLED.includes(id) && importer?.includes('node_modules') !== true,
  plugins: [
    partOfUndici(),
    partsOfLibraries(),
    unusedBuiltins(),
    plainBuiltins(),
    plainLetters(),
    ownPlaces(),
    besideCode(),
    licences(),
  ],
  output: {
    dir: DIST,
    format: 'esm',
    comments: false,
    entryFileNames: '[name].js',
    chunkFileNames: 'chunk/[name].js',
    codeSplitting: {
      groups: CHUNKS.map(([name], index) => ({
        name: (id, context) => (chunkOf(id, context) === name ? name : null),
        debugName: name,
        priority: CHUNKS.length - index,
      })),
    },
  },
})

const closures = new Map<string, Set<string>>()

/** What a root imports, itself included. */
function closure(root: string, context: ChunkingContext): Set<string> {
  const known = closures.get(root)
  if (known !== undefined) return known
  const ids = new Set([root])
  for (const id of ids) for (const imported of context.getModuleInfo(id)?.importedIds ?? []) ids.add(imported)
  closures.set(root, ids)
  return ids
}

/**
 * Of undici, what we import. Its index loads fetch, WebSocket, caches and mocks as well, which take a tenth of a start. A
 * name that is missing here is an error of the build.
 */
function partOfUndici(): Plugin {
  const text = `
    import api from './lib/api/index.js'
    import buildConnector from './lib/core/connect.js'
    import Agent from './lib/dispatcher/agent.js'
    import Client from './lib/dispatcher/client.js'
    import Dispatcher from './lib/dispatcher/dispatcher.js'
    import { getGlobalDispatcher } from './lib/global.js'
    Object.assign(Dispatcher.prototype, api)
    export { Agent, buildConnector, Client }
    export function request(url, { dispatcher = getGlobalDispatcher(), ...options } = {}) {
      const { origin, pathname, search } = new URL(url)
      return dispatcher.request({ method: 'GET', ...options, origin, path: pathname + search })
    }
  `
  return {
    name: 'part of undici',
    load: (id) => (id.endsWith('/node_modules/undici/index.js') ? text : null),
  }
}

/** Of prom-client and pino, what we use: no summaries, gateways, clusters or threads. Metrics of the process are loaded when read. */
function partsOfLibraries(): Plugin {
  const texts: Readonly<Record<string, string>> = {
    '/prom-client/index.js': `
      exports.Registry = require('./lib/registry')
      exports.Counter = require('./lib/counter')
      exports.Gauge = require('./lib/gauge')
      exports.Histogram = require('./lib/histogram')
      exports.collectDefaultMetrics = (options) => require('./lib/defaultMetrics')(options)
    `,
    '/pino/lib/transport.js': 'module.exports = null',
    '/undici/lib/dispatcher/client-h2.js': 'module.exports = null',
  }
  return {
    name: 'parts of libraries',
    load: (id) => texts[/\/node_modules(\/.*)/.exec(id)?.[1] ?? ''] ?? null,
  }
}

/** Libraries load modules of Node's that no command of ours needs: HTTP/2, child processes, threads. */
function unusedBuiltins(): Plugin {
  const unused = [
    { of: '/fastify/lib/server.js', line: /require\('node:http2'\)/, by: 'null' },
    { of: '/pino/lib/tools.js', line: /require\('worker_threads'\)/, by: '{ isMainThread: true }' },
    {
      of: '/commander/lib/command.js',
      line: /^import childProcess from .*$/m,
      by: 'const childProcess = null',
    },
  ]
  return {
    name: 'unused builtins',
    transform(code, id) {
      const found = unused.find(({ of }) => id.endsWith(`/node_modules${of}`))
      if (found === undefined) return null
      if (!found.line.test(code)) throw new Error(`${id} no longer has ${found.line}`)
      return code.replace(found.line, () => found.by)
    },
  }
}

/** Modules of Node's that load many others. A chunk loads one when it first calls a function of it. */
const COSTLY = new Set(['node:crypto', 'node:dns/promises', 'node:fs/promises', 'node:tls', 'node:zlib'])

/**
 * An `import` of a module of Node's reads all that it exports, some of which loads more: WebSocket of node:http loads Node's
 * own undici, ReadStream of node:fs its streams. A chunk reads what it uses, and no more. A `require` of one asks the hooks
 * of modules first. node:assert loads its description of differences.
 */
function plainBuiltins(): Plugin {
  const clause = /^import (?:(?:\* as )?([\w$]+))?(?:, )?(?:\{ (.*?) \} )?\s*from "(node:[^"]+)";$/gm
  const required = /\b__require\("([^"]+)"\)/g
  const assertion = `(value, message) => { if (!value) ${builtin('node:assert')}(value, message); }`
  return {
    name: 'plain builtins',
    renderChunk: (code) =>
      code
        .replaceAll(clause, (_all, whole?: string, names?: string, from = '') => {
          const got = builtin(from)
          const lines = whole === undefined ? [] : [`const ${whole} = ${got};`]
          for (const one of names?.split(', ') ?? []) {
            const [name = '', local = name] = one.split(' as ')
            lines.push(
              COSTLY.has(from) && isFunction(from, name)
                ? `let ${local} = (...given) => (${local} = ${got}.${name})(...given);`
                : `const { ${name}: ${local} } = ${got};`,
            )
          }
          return lines.join(' ')
        })
        .replaceAll(required, (all, name: string) => {
          if (!isBuiltin(name)) return all
          return /^(node:)?assert$/.test(name) ? assertion : builtin(name)
        }),
  }
}

function builtin(name: string): string {
  return `globalThis.process.getBuiltinModule("${name}")`
}

/** Not a class or a constant. */
function isFunction(from: string, name: string): boolean {
  const module: unknown = process.getBuiltinModule(from)
  return /^[a-z]/.test(name) && typeof Reflect.get(module as object, name) === 'function'
}

/** One letter beyond Latin-1 doubles what V8 reads of a file, so they are written as escapes: all stand in texts. */
function plainLetters(): Plugin {
  const escape = (letter: string): string => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`
  return {
    name: 'plain letters',
    // After the last printer, which would write the letters again.
    generateBundle(_options, bundle) {
      for (const chunk of Object.values(bundle))
        if (chunk.type === 'chunk') chunk.code = chunk.code.replaceAll(/[^\0-\x7f]/g, escape)
    },
  }
}

/** A module finds files by its own place. In a chunk, that is where the module would stand if it were a file of `dist`. */
function ownPlaces(): Plugin {
  return {
    name: 'own places',
    transform(code, id) {
      if (!id.startsWith(SOURCE + path.sep) || !code.includes('import.meta.')) return null
      const place = path.relative(SOURCE, id).replace(/\.ts$/, '.js')
      return code
        .replaceAll('import.meta.url', `__urlOf("${place}")`)
        .replaceAll('import.meta.dirname', `__folderOf("${path.dirname(place)}")`)
    },
    renderChunk(code, { fileName }) {
      const top = path.relative(path.dirname(fileName), '.') || '.'
      return code
        .replaceAll(/__urlOf\("(.*?)"\)/g, `new URL("${top}/$1", import.meta.url).href`)
        .replaceAll(/__folderOf\("(.*?)"\)/g, `(import.meta.dirname + "/${top}/$1")`)
    },
  }
}

/** Copies what is read, and leaves of the declarations those that a face shows. */
function besideCode(): Plugin {
  return {
    name: 'beside the code',
    writeBundle() {
      for (const folder of READ)
        cpSync(path.join(SOURCE, folder), path.join(DIST, folder), { recursive: true })
      const shown = new Set<string>()
      for (const face of FACES) show(path.join(DIST, `${face}.d.ts`), shown)
      for (const file of globSync(`${DIST}/**/*.d.ts`)) if (!shown.has(file)) rmSync(file)
    },
  }
}

function show(file: string, shown: Set<string>): void {
  if (shown.has(file) || !existsSync(file)) return
  shown.add(file)
  for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(/\b(?:from|import\() ?["'](\.[^"']*)["']/g))
    show(path.join(path.dirname(file), name.replace(/\.[jt]s$/, '.d.ts')), shown)
}

/** The licences of what is in the bundle go with it, as they ask. */
function licences(): Plugin {
  return {
    name: 'licences',
    writeBundle(_options, bundle) {
      const chunks = Object.values(bundle).filter((one): one is OutputChunk => one.type === 'chunk')
      const folders = chunks.flatMap(({ moduleIds }) =>
        moduleIds.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []),
      )
      const texts = [...new Set(folders)].sort().map(licenceOf)
      writeFileSync(path.join(DIST, 'LICENSES.txt'), texts.join(`\n${'-'.repeat(80)}\n\n`))
    },
  }
}

function licenceOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'))
  const [file] = globSync('{LICENSE,LICENCE,license}*', { cwd: folder })
  const text = file === undefined ? '' : `\n${readFileSync(path.join(folder, file), 'utf8')}`
  return `${name} ${version}: ${license}\n${text}`
}
