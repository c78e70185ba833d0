import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const SRC = join(import.meta.dirname, '../../src')

/** Looks at a process before and after a module came into it. */
const program = (module: string, then = '') => `
  // Looking at them opens them.
  void [process.stdin, process.stdout, process.stderr]
  const before = { listeners: listeners(), resources: process.getActiveResourcesInfo() }
  function listeners() {
    return Object.fromEntries(process.eventNames().map((name) => [String(name), process.listenerCount(name)]))
  }
  const library = await import(${JSON.stringify(join(SRC, module))})
  ${then}
  await new Promise((resolve) => setImmediate(resolve))
  const after = { listeners: listeners(), resources: process.getActiveResourcesInfo() }
  process.stdout.write(JSON.stringify({ before, after, names: Object.keys(library).sort() }))
`

interface Seen {
  before: object
  after: object
  names: string[]
}

async function look(module: string, then?: string): Promise<Seen> {
  const given = ['--input-type=module', '--eval', program(module, then)]
  const { stdout } = await promisify(execFile)(process.execPath, given, { timeout: 60_000 })
  return JSON.parse(stdout) as Seen
}

it('importing the library opens no handle, starts no timer, installs no listener: the process ends by itself', async () => {
  const { before, after, names } = await look('index.ts')
  expect(after).toEqual(before)
  expect(names).toEqual([
    'CallbackRejected',
    'ConfigError',
    'DeadLetter',
    'OperatorError',
    'createSidecar',
    'defineHandlers',
    'isFact',
    'tool',
    'verifyCallback',
    'verifyCallbacks',
    'verifyToolCall',
  ])
})

it('importing and creating the client does the same', async () => {
  const make = `library.createClient({ baseUrl: 'http://127.0.0.1:1', token: 'svc_pat_one' })`
  const { before, after, names } = await look('client/index.ts', make)
  expect(after).toEqual(before)
  expect(names).toEqual(['ServiceError', 'createClient', 'isEvent'])
})
