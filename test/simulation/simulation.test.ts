import { spawnSync } from 'node:child_process'
import { mkdtempDisposableSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { FULL, RELEASE } from '../support/full.ts'
import { campaign } from './campaign.ts'
import { play } from './chunk.ts'
import { openJournal, saveJournal } from './journal.ts'
import { run } from './run.ts'
import { ENTRIES, sourcesOf } from './sources.ts'

const ROOT = join(import.meta.dirname, '../..')

let played: ReturnType<typeof play> | null = null
/** Sixty seeds, one after the other. */
function together(): ReturnType<typeof play> {
  return (played ??= play({ from: 1, to: 61, mode: 'liveness' }))
}

describe('the simulated sidecar', () => {
  it('does the same twice with the same seed', async () => {
    for (const seed of [1, 2, 3]) {
      const first = await run({ seed, mode: 'liveness' })
      const second = await run({ seed, mode: 'liveness' })
      expect(second.hash).toBe(first.hash)
    }
  })

  it.runIf(FULL)(
    'does the same on every core, whatever was played before',
    { timeout: 120_000 },
    async () => {
      const apart = openJournal(null, 'liveness', 1)
      await campaign({ journal: apart, end: 61, threads: 2 })
      expect(apart.tally.seeds).toBe(60)
      expect(apart.tally.traces).toBe((await together()).traces)
    },
  )

  it.runIf(RELEASE)(
    'continues an interrupted campaign, but none of other sources',
    { timeout: 120_000 },
    async () => {
      using folder = mkdtempDisposableSync(join(tmpdir(), 'journal-'))
      const file = join(folder.path, 'journal')
      const begun = openJournal(file, 'liveness', 1)
      const stop = new AbortController()
      await campaign({
        journal: begun,
        end: 61,
        threads: 2,
        stop: stop.signal,
        onProgress() {
          saveJournal(file, begun)
          stop.abort()
        },
      })
      const resumed = openJournal(file, 'liveness', 1)
      expect(resumed.next).toBeLessThan(61)
      await campaign({ journal: resumed, end: 61, threads: 2 })
      expect(resumed.tally).toEqual(await together())

      expect(() => openJournal(file, 'liveness', 2)).toThrow('is a journal of another first seed: 1, now 2')
      saveJournal(file, { ...resumed, sources: 'others' })
      expect(() => openJournal(file, 'liveness', 1)).toThrow('is a journal of other sources: others, now ')
    },
  )
})

it('a journal is of all that a seed plays, as Node loads it, and of nothing else', () => {
  const sources = sourcesOf(ENTRIES)
  const code = `
    import { registerHooks } from 'node:module'
    const urls = []
    registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) })
    await import('./test/simulation/campaign.ts')
    await import('./test/simulation/chunk.ts')
    process.stdout.write(JSON.stringify(urls))
    process.exit()`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', code], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  expect(stderr).toBe('')
  const loaded = (JSON.parse(stdout) as string[])
    .filter((url) => url.startsWith('file:') && !url.includes('/node_modules/'))
    .map((url) => relative(ROOT, fileURLToPath(url)))
  expect(loaded.length).toBeGreaterThan(100)
  expect(loaded.filter((file) => !sources.includes(file))).toEqual([])
  expect(sources).toContain('src/std/json.ts')
  expect(sources.filter((file) => /^src\/(cli|emulator|library|admin\/routes)\//.test(file))).toEqual([])
})
