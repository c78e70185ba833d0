import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { identifyProcess, isGone } from '../../src/system/process.ts'

const MODULE = JSON.stringify(new URL('../../src/system/process.ts', import.meta.url).href)
/** Prints its name and waits. */
const PROGRAM = `
  const { identifyProcess } = await import(${MODULE})
  console.log(identifyProcess())
  setInterval(() => undefined, 1000)`

test.runIf(process.platform === 'linux')(
  'a process is gone once it was killed, also when another one has its number',
  async () => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string]
    const name = line.trim()
    expect(isGone(name)).toBe(false)
    child.kill('SIGKILL')
    await once(child, 'close')
    expect(isGone(name)).toBe(true)
    const [machine, , started] = name.split('/')
    expect(isGone([machine, process.pid, started].join('/'))).toBe(true)
  },
)

test.runIf(process.platform === 'linux')(
  'nothing is said of this process, of another machine and of what is no name',
  () => {
    const own = identifyProcess() ?? ''
    expect(own).toMatch(/^[0-9a-f]{32}\/\d+\/\d+$/)
    const [machine, pid, started] = own.split('/')
    const names = [
      own,
      `0${machine?.slice(1)}0/999999/${started}`,
      `${machine}/0/${started}`,
      `${machine}/-1/1`,
      `${machine}/${pid}`,
      `${machine}`,
      '',
    ]
    expect(names.filter(isGone)).toEqual([])
    expect(identifyProcess()).toBe(own)
    expect(pid).toBe(String(process.pid))
  },
)

/** Not every system lets a user make namespaces. */
const UNSHARE = ['--user', '--map-root-user', '--pid', '--fork']
const canUnshare = spawnSync('unshare', [...UNSHARE, 'true']).status === 0

test.runIf(canUnshare)('a process whose /proc shows the numbers of another namespace has no name', () => {
  const program = `console.log((await import(${MODULE})).identifyProcess())`
  const run = [process.execPath, '--input-type=module', '-e', program]
  const seen = spawnSync('unshare', [...UNSHARE, ...run], { encoding: 'utf8' })
  expect(seen.stdout.trim()).toBe('null')
})
