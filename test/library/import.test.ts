import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const INDEX = join(import.meta.dirname, '../../src/index.ts')

/** Looks at a process before and after the library came into it. */
const PROGRAM = `
  // Looking at them opens them.
  void [process.stdin, process.stdout, process.stderr]
  const before = { listeners: listeners(), resources: process.getActiveResourcesInfo() }
  function listeners() {
    return Object.fromEntries(process.eventNames().map((name) => [String(name), process.listenerCount(name)]))
  }
  const library = await import(${JSON.stringify(INDEX)})
  await new Promise((resolve) => setImmediate(resolve))
  const after = { listeners: listeners(), resources: process.getActiveResourcesInfo() }
  process.stdout.write(JSON.stringify({ before, after, names: Object.keys(library).sort() }))
`

it('importing the library opens no handle, starts no timer, installs no listener: the process ends by itself', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', PROGRAM], {
    timeout: 10_000,
  })
  const { before, after, names } = JSON.parse(stdout) as { before: object; after: object; names: string[] }
  expect(after).toEqual(before)
  expect(names).toEqual([
    'CallbackRejected',
    'ConfigError',
    'DeadLetter',
    'OperatorError',
    'createSidecar',
    'defineHandlers',
    'tool',
    'verifyCallback',
  ])
})
