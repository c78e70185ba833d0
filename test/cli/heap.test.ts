import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'

/** Allocates lists of objects, of which the last hundred live on, with a pause after each, milliseconds. */
const ALLOCATE = `
  import { getHeapSpaceStatistics } from 'node:v8'
  import { setTimeout as pause } from 'node:timers/promises'
  import { growUnderLoad, keepHeapSmall } from './src/cli/heap.ts'
  const young = () => getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size
  keepHeapSmall()
  growUnderLoad()
  const live = []
  const allocate = async (times, ms) => {
    for (let n = 0; n < times; n++) {
      live[n % 100] = Array.from({ length: 8192 }, (_, index) => ({ index, n }))
      await pause(ms)
    }
    return young() / 2 ** 20
  }
  const before = young() / 2 ** 20
  const calm = await allocate(30, 60)
  // A busy machine may slow it down so far that it is no load for a while.
  for (let turn = 0; turn < 100 && young() < 16 * 2 ** 20; turn++) await allocate(100, 0)
  const loaded = await allocate(200, 0)
  process.stdout.write(JSON.stringify({ before, calm, loaded }))
`

it('the young generation grows only under load, and up to a limit', () => {
  const cwd = new URL('../../', import.meta.url)
  const out = execFileSync(process.execPath, ['--input-type=module', '-e', ALLOCATE], {
    cwd,
    encoding: 'utf8',
  })
  const { before, calm, loaded } = JSON.parse(out) as { before: number; calm: number; loaded: number }
  expect(calm).toBeLessThan(before + 8)
  expect(loaded).toBeGreaterThanOrEqual(16)
  expect(loaded).toBeLessThan(40)
})
