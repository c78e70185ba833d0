import { copyFileSync, linkSync, renameSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { request } from 'undici'
import { cli, start } from '../cli/process.ts'
import { assertWhole } from '../support/oracle.ts'
import type { Answer } from '../support/app.ts'
import { Rig, type RigOptions } from '../support/rig.ts'
import { until } from '../support/until.ts'
import { FULL } from '../support/full.ts'

/** What operators do to the files of a store, while a sidecar runs and while none does. */

/** A delivery may be under way for longer than a stop takes. */
const OPTIONS: RigOptions = { process: true, tools: { lookup_order: {} }, handler: { timeout: '30s' } }
const CALL = 'call lookup_order {"order_id":"1"}'

const storeOf = (rig: Rig): string => String(rig.config.store?.url).slice('sqlite:'.length)

/** The configuration as the commands read it. */
async function configFile(rig: Rig, url = rig.config.store?.url): Promise<string> {
  const file = path.join(rig.folder, `${path.basename(String(url))}.json`)
  await writeFile(file, JSON.stringify({ ...rig.config, store: { url } }))
  return file
}

async function worked(rig: Rig, sessions = 1): Promise<void> {
  for (let count = 0; count < sessions; count++) {
    const session = await rig.client.start(CALL, 'say {{last}}')
    await rig.client.reached(session, 'idle')
  }
  await assertWhole(rig, { tools: ['lookup_order'] })
}

/** The handler keeps deliveries under way until the result is called, so that the sidecar can be asked while it stops. */
async function holdUp(rig: Rig): Promise<() => void> {
  const { promise, resolve } = Promise.withResolvers<Answer>()
  rig.app.handle = () => promise
  const calls = rig.app.callbacks.length
  await rig.client.start('say Hello')
  await until('a delivery under way', () => rig.app.callbacks.length > calls)
  return () => resolve({ reset: true })
}

/** Unready, says why, acknowledges nothing, ends with 1 after `release`. */
async function expectLost(rig: Rig, release: () => void, says: string): Promise<void> {
  const { program } = rig
  if (program === null) throw new Error('no sidecar runs')
  const { body } = await until('an unready sidecar', async () => {
    const probe = await rig.raw('GET', '/readyz?verbose')
    return probe.status === 503 && probe
  })
  expect(body['text']).toContain('[-] store failed: ')
  expect(body['text']).toContain(says)
  const answer = await request(String(rig.config.webhooks?.public_url), {
    method: 'POST',
    headers: { 'x-service-signature': 'a'.repeat(64), 'x-service-timestamp': String(Date.now()) },
    body: '{}',
  })
  expect(answer.statusCode).toBe(503)
  release()
  expect(await program.ended()).toBe(1)
  const said = program.lines.filter(({ message }) => message.startsWith('store: it is lost'))
  expect(said).toHaveLength(1)
  expect(program.lines.at(-1)?.message).toContain('error: store: ')
  expect(program.lines.at(-1)?.message).toContain(says)
  rig.program = null
}

test('the database deleted under a running sidecar: it logs that, ends, and loses nothing', async () => {
  await using rig = await Rig.open(OPTIONS)
  await worked(rig)
  const release = await holdUp(rig)
  rmSync(storeOf(rig))
  await expectLost(rig, release, `${storeOf(rig)} was deleted`)
  rig.app.handle = () => ({})
  await rig.start()
  await worked(rig)
  expect(rig.app.runs).toHaveLength(2)
})

test.runIf(FULL)(
  'a backup moved over the database of a running sidecar: it ends, and the next start continues from the backup',
  async () => {
    await using rig = await Rig.open(OPTIONS)
    await worked(rig)
    const backup = path.join(rig.folder, 'backup.db')
    expect(await cli(['store', 'backup', backup, '-c', await configFile(rig)])).toMatchObject({ code: 0 })
    await worked(rig)
    const release = await holdUp(rig)
    renameSync(backup, storeOf(rig))
    await expectLost(rig, release, `${storeOf(rig)} is another file now`)
    rig.app.handle = () => ({})
    await rig.start()
    const last = await rig.client.start('say once more')
    await rig.client.reached(last, 'idle')
    await assertWhole(rig, { tools: ['lookup_order'], restored: true })
  },
)

test('a second sidecar beside a removed lock file: the first is fenced and ends, and the writes of both are complete', async () => {
  await using rig = await Rig.open(OPTIONS)
  await worked(rig)
  const release = await holdUp(rig)
  const first = rig.program
  rmSync(`${storeOf(rig)}-lock`)
  const file = path.join(rig.folder, 'second.json')
  const { webhooks, ...config } = rig.config
  expect(webhooks?.enabled).toBe(true)
  await writeFile(file, JSON.stringify({ ...config, log: { level: 'info', format: 'json' } }))
  const second = start(['run', '-c', file])
  await expectLost(rig, release, 'another process has taken the store over')
  expect(first?.lines.some(({ message }) => message.includes('epoch 1, now 2'))).toBe(true)
  rig.app.handle = () => ({})
  second.process.kill('SIGTERM')
  expect(await second.ended).toMatchObject({ code: 0 })
  await rig.start()
  await worked(rig)
  expect(rig.app.runs).toHaveLength(2)
})

test('a second sidecar under a hard link is refused, and the first continues', async () => {
  await using rig = await Rig.open(OPTIONS)
  await worked(rig)
  const link = path.join(rig.folder, 'link.db')
  linkSync(storeOf(rig), link)
  const file = path.join(rig.folder, 'second.json')
  await writeFile(file, JSON.stringify({ ...rig.config, store: { url: `sqlite:${link}` } }))
  const { code, err } = await cli(['run', '-c', file])
  expect([code, err]).toEqual([1, expect.stringContaining('is in use by another process, maybe under')])
  await worked(rig)
})

test('a backup copied over the store of a killed sidecar: nothing opens it, and store restore repairs it', async () => {
  await using rig = await Rig.open(OPTIONS)
  await worked(rig)
  const config = await configFile(rig)
  const backup = path.join(rig.folder, 'backup.db')
  expect(await cli(['store', 'backup', backup, '-c', config])).toMatchObject({ code: 0 })
  await worked(rig)
  await rig.kill()
  const store = storeOf(rig)
  copyFileSync(backup, store)
  for (const args of [
    ['run', '-c', config],
    ['store', 'check', '-c', config],
    ['store', 'backup', path.join(rig.folder, 'other.db'), '-c', config],
  ]) {
    const { code, err } = await cli(args)
    expect([args[0], args[1], code]).toEqual([args[0], args[1], 1])
    expect(err).toContain(`${store} was replaced, and ${store}-wal has commits of the earlier database`)
    expect(
      err
        .trim()
        .split('\n')
        .filter((line) => line.startsWith('error:')),
    ).toHaveLength(1)
  }
  const { code: found, out: findings } = await cli(['check', '-c', config])
  expect([found, findings]).toEqual([1, expect.stringContaining('was replaced')])

  const { code, out } = await cli(['store', 'restore', backup, '-c', config])
  expect(code).toBe(0)
  expect(out).toContain(`restored from ${backup}, last written 20`)
  const kept = /^the former database is kept: (\S+)$/m.exec(out)?.[1] ?? ''
  expect(kept).toContain(`${store}.before-restore-`)
  expect(await cli(['store', 'check', '-c', config])).toMatchObject({ code: 0 })
  await rig.start()
  const third = await rig.client.start('say once more')
  await rig.client.reached(third, 'idle')
  await assertWhole(rig, { tools: ['lookup_order'], restored: true })
  expect(rig.app.runs).toHaveLength(2)
})

test('store restore: what it refuses, what it keeps, and what it says to programs', async () => {
  await using rig = await Rig.open(OPTIONS)
  await worked(rig)
  const config = await configFile(rig)
  const store = storeOf(rig)
  const backup = path.join(rig.folder, 'backup.db')
  await cli(['store', 'backup', backup, '-c', config])
  const refusals: [string[], number, string][] = [
    [[backup], 1, 'is in use by another sidecar'],
    [[path.join(rig.folder, 'none.db')], 1, 'does not exist'],
    [[store], 2, 'is the store itself'],
    [[], 2, "argument 'file' is missing"],
  ]
  for (const [args, code, says] of refusals) {
    const ended = await cli(['store', 'restore', ...args, '-c', config])
    expect([ended.code, ended.err]).toEqual([code, expect.stringContaining(says)])
  }
  await worked(rig)
  await rig.kill()

  const damaged = path.join(rig.folder, 'damaged.db')
  copyFileSync(backup, damaged)
  const db = new Database(damaged)
  db.prepare("UPDATE facts SET body = '{}'").run()
  db.close()
  const theirs = path.join(rig.folder, 'theirs.db')
  const other = new Database(theirs)
  other.exec('CREATE TABLE recipes (name TEXT)')
  other.close()
  for (const [file, says] of [
    [damaged, 'is damaged, so its copy would be damaged too'],
    [theirs, 'is a database of another program'],
  ] as const) {
    const ended = await cli(['store', 'restore', file, '-c', config])
    expect([ended.code, ended.err]).toEqual([1, expect.stringContaining(says)])
  }
  // Nothing was changed: the killed store still has all.
  const facts = (json: string): number => (JSON.parse(json) as { facts: number }).facts
  const before = facts((await cli(['store', 'check', '--json', '-c', config])).out)
  const { code, out } = await cli(['store', 'restore', backup, '--json', '-c', config])
  const printed = JSON.parse(out) as { from: string; kept: string; file: string; writtenAt: number }
  expect([code, printed]).toEqual([
    0,
    expect.objectContaining({ file: store, from: backup, problems: [], writtenAt: expect.any(Number) }),
  ])
  expect(facts(out)).toBeLessThan(before)
  // What was kept is whole, with its log: it can be put back.
  const back = await cli(['store', 'restore', printed.kept, '--json', '-c', config])
  expect([back.code, facts(back.out)]).toEqual([0, before])
  await rig.start()
  await worked(rig)
})
