import { cpSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { defineConfig, type OutputChunk, type Plugin } from 'rolldown'

/**
 * Makes `dist` of `src`, after the compiler has put the declarations there. A start that loads six hundred small files takes
 * three times as long as one that loads forty, so what is published is a bundle, our dependencies with it. It is not
 * minified: a stack trace names our functions and shows their lines.
 */
const SOURCE = path.join(import.meta.dirname, 'src')
const DIST = path.join(import.meta.dirname, 'dist')
const FACES = ['index', 'client/index', 'emulator/index']
/** Files that the program reads beside its code. */
const READ = ['sidecar/store/sqlite/migrations', 'sidecar/admin/console/web']
/** Has a binary of its own, is loaded where a person reads the log, or is the user's: each is installed beside us. */
const INSTALLED = ['better-sqlite3', 'pino-pretty', '@opentelemetry/api']

export default defineConfig({
  input: Object.fromEntries(['main', ...FACES].map((name) => [name, path.join(SOURCE, `${name}.ts`)])),
  platform: 'node',
  // prom-client asks for the API of OpenTelemetry as well, and must not need the user's.
  external: (id, importer) => INSTALLED.includes(id) && importer?.includes('node_modules') !== true,
  plugins: [partOfUndici(), plainHttp(), ownPlaces(), besideCode(), licences()],
  output: {
    dir: DIST,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'chunk/[name].js',
  },
})

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

/** An `import` of node:http reads all that it exports, of which WebSocket loads Node's own undici: a tenth of a start. */
function plainHttp(): Plugin {
  const id = '\0plain http'
  const values = Object.entries(Object.getOwnPropertyDescriptors(http)).filter(([, one]) => 'value' in one)
  return {
    name: 'plain http',
    // A dependency that asks with `require` gets all of it, and reads only what it uses: undici needs a getter of it.
    resolveId: (name, importer) =>
      name === 'node:http' && importer?.startsWith(SOURCE) === true ? id : null,
    load: (name) =>
      name === id
        ? `export const { ${values.map(([key]) => key).join(', ')} } = process.getBuiltinModule('node:http')`
        : null,
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
  if (shown.has(file)) return
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
