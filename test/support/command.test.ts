import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { some } from './full.ts'

const TEST = join(import.meta.dirname, '..')
const PROGRAMS = {
  simulate: 'simulation/simulate.ts',
  torture: 'torture/torture.ts',
  attack: 'attack/attack.ts',
  mutate: 'mutation/mutate.ts',
  bench: 'bench/bench.ts',
}

it.each(some(Object.entries(PROGRAMS)))(
  'npm run %s says how it is used where it does not know an option',
  async (name, file) => {
    const ended = promisify(execFile)(process.execPath, [join(TEST, file), '--colour', 'blue'])
    const { code, stderr } = (await ended.catch((error: unknown) => error)) as {
      code: number
      stderr: string
    }
    expect(code).toBe(2)
    expect(stderr).toMatch(/(^|\n)Unknown option '--colour'/)
    expect(stderr).toContain(`npm run ${name} -- `)
    expect(stderr).not.toMatch(/\n +at /)
  },
)
