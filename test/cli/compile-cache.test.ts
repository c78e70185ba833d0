import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { cli } from './process.ts'

function folder(): string {
  const made = mkdtempSync(path.join(tmpdir(), 'cache-'))
  onTestFinished(() => rmSync(made, { recursive: true }))
  return made
}

async function run(caches: string): Promise<string[]> {
  const shared = folder()
  expect(await cli(['--version'], { XDG_CACHE_HOME: caches, TMPDIR: shared })).toMatchObject({
    code: 0,
    err: '',
  })
  // The first user that writes to a shared folder decides what it holds.
  expect(readdirSync(shared)).toEqual([])
  return readdirSync(path.join(caches, 'agent-session-sidecar'))
}

test('compiled code is kept in a folder of our own', async () => {
  expect(await run(folder())).not.toEqual([])
})

test.each([
  ['a folder that others may write to', (own: string) => (mkdirSync(own), chmodSync(own, 0o777))],
  ['a link', (own: string) => symlinkSync(folder(), own)],
])('compiled code is not taken from %s', async (_name, make) => {
  const caches = folder()
  make(path.join(caches, 'agent-session-sidecar'))
  expect(await run(caches)).toEqual([])
})
