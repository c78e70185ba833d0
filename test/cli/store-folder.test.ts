import { execFile, execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { createSidecar } from '../../src/sidecar/sidecar.ts'
import { openDatabase } from '../../src/sidecar/store/sqlite/open.ts'
import { migrate } from '../../src/sidecar/store/sqlite/schema.ts'
import { folderWith } from '../config/folder.ts'
import { silentLog } from '../pictures/log.ts'
import { ROOT } from '../readme/document.ts'
import { start, type Ended } from './process.ts'

const CONFIG = 'service: { base_url: "http://127.0.0.1:9", token: x }\npolling: { enabled: true }\n'

/** Runs the program in a working directory. */
function run(cwd: string, args: string[], env: Record<string, string> = {}): Promise<Ended> {
  return start(args, { cwd, env }).ended
}

/** A folder with an empty store of an earlier version, which resolved its path against the working directory. */
async function folderWithOldStore(service = 'http://127.0.0.1:9'): Promise<string> {
  const folder = await folderWith({})
  await mkdir(path.join(folder, 'data'))
  const db = new Database(path.join(folder, 'data/sidecar.db'))
  migrate(db, 7)
  db.prepare('INSERT INTO checkpoints (name, value) VALUES (?, ?)').run('service', service)
  db.close()
  return folder
}

/** A folder with a configuration and, below it, an empty store. */
async function folderWithStore(
  files: Record<string, string> = { 'sidecar.yaml': CONFIG },
  service = 'http://127.0.0.1:9',
): Promise<string> {
  const folder = await folderWith(files)
  await mkdir(path.join(folder, 'data'))
  const { db, unlock } = openDatabase(path.join(folder, 'data/sidecar.db'))
  db.prepare('INSERT INTO checkpoints (name, value) VALUES (?, ?)').run('service', service)
  db.close()
  unlock()
  return folder
}

describe('the store of a configuration', () => {
  test('is beside the configuration, in whatever folder a command is called', async () => {
    const [mine, other] = [await folderWithStore(), await folderWithStore()]
    const { code, out } = await run(mine, ['store', 'check', '-c', `${other}/sidecar.yaml`])
    expect({ code, file: out.split(':')[0] }).toEqual({ code: 0, file: `${other}/data/sidecar.db` })
    const kept = await run(mine, ['store', 'backup', 'kept.db', '-c', `${other}/sidecar.yaml`])
    expect(kept).toMatchObject({ code: 0, err: '' })
    expect(existsSync(path.join(mine, 'kept.db'))).toBe(true)
  })

  test('has the same path in the image, where the configuration is mounted in another folder', async () => {
    const [app, mounted] = [await folderWithStore({}), await folderWith({ 'sidecar.yaml': CONFIG })]
    const env = { SIDECAR_STORE_BASE: app }
    const { code, out } = await run(mounted, ['store', 'check', '-c', 'sidecar.yaml'], env)
    expect({ code, file: out.split(':')[0] }).toEqual({ code: 0, file: `${app}/data/sidecar.db` })
  })

  // [fault operator-1]
  test('left in the working directory by an earlier version stops every command that would create another store', async () => {
    const [old, configured] = [await folderWithOldStore(), await folderWith({ 'sidecar.yaml': CONFIG })]
    const config = `${configured}/sidecar.yaml`
    const [from, to] = [`${old}/data/sidecar.db`, `${configured}/data/sidecar.db`]
    for (const args of [['run'], ['store', 'check'], ['store', 'backup', 'kept.db']]) {
      const { code, err } = await run(old, [...args, '-c', config])
      expect({ args, code }).toEqual({ args, code: 2 })
      expect(err).toContain(`there is no database at ${to}, but one at ${from},`)
    }
    const { code, out } = await run(old, ['check', '-c', config, '--json'])
    expect(code).toBe(1)
    expect(out).toContain(`there is no database at ${to}, but one at ${from},`)
    expect(existsSync(to)).toBe(false)

    const { err } = await run(old, ['run', '-c', config])
    const command = /move it: (.*)/.exec(err)?.[1] ?? ''
    execFileSync('sh', ['-c', command])
    expect(await run(old, ['store', 'check', '-c', config])).toMatchObject({ code: 0 })
    expect(existsSync(from)).toBe(false)
  })

  test('left behind takes its WAL along, and its path may hold anything', async () => {
    const old = await folderWithOldStore()
    const odd = path.join(old, "it's $HOME")
    await mkdir(odd)
    await rename(path.join(old, 'data'), path.join(odd, 'data'))
    await writeFile(path.join(odd, 'data/sidecar.db-wal'), '')
    const configured = await folderWith({ 'sidecar.yaml': CONFIG })
    const { err } = await run(odd, ['store', 'check', '-c', `${configured}/sidecar.yaml`])
    execFileSync('sh', ['-c', /move it: (.*)/.exec(err)?.[1] ?? ''])
    for (const name of ['sidecar.db', 'sidecar.db-wal'])
      expect([name, existsSync(path.join(configured, 'data', name))]).toEqual([name, true])
  })

  test('of another configuration is ignored if this configuration sets store.url', async () => {
    const old = await folderWithOldStore()
    const configured = await folderWith({})
    const env = { SIDECAR_STORE__URL: `sqlite:${configured}/data/sidecar.db` }
    const { err } = await run(
      old,
      ['store', 'check', '-c', `${await folderWith({ 's.yaml': CONFIG })}/s.yaml`],
      env,
    )
    expect(err).toContain(`${configured}/data/sidecar.db does not exist`)
    expect(err).not.toContain(old)
  })

  test('is created if the store in the working directory belongs to another service', async () => {
    const old = await folderWithOldStore('http://127.0.0.1:8')
    const configured = await folderWith({ 'sidecar.yaml': CONFIG })
    const { out } = await run(old, ['check', '-c', `${configured}/sidecar.yaml`, '--json'])
    expect(out).toContain(`${configured}/data/sidecar.db can be created`)
    expect(out).not.toContain(old)
  })

  test('is created if the store in the working directory was written for a configuration there', async () => {
    const first = await folderWithStore()
    const configured = await folderWith({ 'sidecar.yaml': CONFIG })
    const { out } = await run(first, ['check', '-c', `${configured}/sidecar.yaml`, '--json'])
    expect(out).toContain(`${configured}/data/sidecar.db can be created`)
    expect(out).not.toContain(first)
  })

  test('left in the working directory, from which the configuration was moved, stops every command', async () => {
    const moved = await folderWithStore()
    await mkdir(path.join(moved, 'etc'))
    await rename(path.join(moved, 'sidecar.yaml'), path.join(moved, 'etc/sidecar.yaml'))
    const { code, err } = await run(moved, ['run', '-c', 'etc/sidecar.yaml'])
    expect(code).toBe(2)
    expect(err).toContain(
      `there is no database at ${moved}/etc/data/sidecar.db, but one at ${moved}/data/sidecar.db,`,
    )
  })

  test('left behind stops the library as well', async () => {
    const old = await folderWithOldStore()
    const configured = await folderWith({ 'sidecar.yaml': CONFIG })
    const env = { npm_package_json: `${old}/package.json` }
    const sidecar = await createSidecar({ config: `${configured}/sidecar.yaml`, env, log: silentLog })
    await expect(sidecar.start()).rejects.toThrow(`but one at ${old}/data/sidecar.db`)
    await sidecar.stop()
  })
})

describe('npm start', () => {
  /** As a person would, with the npm of this machine. */
  function npm(cwd: string, ...args: string[]): Promise<Ended> {
    const env = { PATH: process.env['PATH'], HOME: process.env['HOME'] }
    return new Promise((resolve) => {
      execFile('npm', ['--prefix', ROOT, 'start', '--', ...args], { cwd, env }, (error, out, err) =>
        resolve({ code: error === null ? 0 : Number(error.code), out, err }),
      )
    })
  }

  test('reads what is named from where it is called, and prints nothing but the program’s output', async () => {
    const called = await folderWithStore()
    const { out, err, code } = await npm(called, 'store', 'check', '-c', 'sidecar.yaml', '--json')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(JSON.parse(out)).toMatchObject({ file: `${called}/data/sidecar.db`, problems: [] })
  })

  test('prints nothing of its own when the program fails, either', async () => {
    const called = await folderWith({ 'sidecar.yaml': CONFIG })
    const { out, err, code } = await npm(called, 'check', '-c', 'sidecar.yaml', '--json')
    expect({ code, err }).toEqual({ code: 1, err: '' })
    for (const line of out.trimEnd().split('\n')) expect(JSON.parse(line)).toHaveProperty('subject')
  })

  test('names commands as they are typed in the repository', async () => {
    const { err, code } = await npm(await folderWith({}), 'check')
    expect({ code, err }).toEqual({
      code: 2,
      err: 'error: sidecar.yaml does not exist\n  fix: write one with "npm start -- init", or name another file with -c\n',
    })
    expect((await npm(ROOT, 'check', '--help')).out).toContain('Usage: npm start -- check [options]')
    const folder = await folderWithStore()
    const { db, unlock } = openDatabase(path.join(folder, 'data/sidecar.db'))
    db.pragma('user_version = 999')
    db.close()
    unlock()
    expect((await npm(folder, 'check')).out).toContain('"npm start -- run" would refuse it')
  })

  test('of another package does not move a program that it runs', async () => {
    const [called, cwd] = [await folderWith({}), await folderWithStore()]
    const env = { INIT_CWD: called, npm_lifecycle_event: 'start', npm_package_json: `${cwd}/package.json` }
    expect(await run(cwd, ['store', 'check', '-c', 'sidecar.yaml'], env)).toMatchObject({ code: 0 })
  })

  test('of this package does not move a program that was started elsewhere by what it runs', async () => {
    const [called, cwd] = [await folderWith({}), await folderWithStore()]
    const env = { INIT_CWD: called, npm_lifecycle_event: 'start', npm_package_json: `${ROOT}/package.json` }
    expect(await run(cwd, ['store', 'check', '-c', 'sidecar.yaml'], env)).toMatchObject({ code: 0 })
  })
})
