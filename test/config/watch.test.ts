import { execFileSync } from 'node:child_process'
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { resolveConfig } from '../../src/sidecar/config/load.ts'
import { watchSecrets, type SecretChange } from '../../src/sidecar/config/watch.ts'
import type { Clock } from '../../src/std/ports.ts'
import { folderWith } from './folder.ts'

const NEW = 'whsec_bmV3'
const OLD = 'whsec_b2xk'

/** A clock whose timers run when the test says so. */
function handClock(): Clock & { waiting: (() => void)[] } {
  const waiting: (() => void)[] = []
  return {
    waiting,
    now: () => 0,
    steady: () => 0,
    soon: (run) => run(),
    after(_ms, run) {
      waiting.push(run)
      return { cancel: () => void waiting.splice(waiting.indexOf(run), 1) }
    },
  }
}

async function watched(folder: string) {
  const { config } = await resolveConfig(
    {
      service: { base_url: 'https://a.b', token_file: 'token' },
      handlers: [{ name: 'app', url: 'http://127.0.0.1/', secret: OLD, secrets_file: 'secrets' }],
    },
    { base: folder },
  )
  const changes: SecretChange[] = []
  const warnings: string[] = []
  const clock = handClock()
  const watch = watchSecrets(config, (change) => void changes.push(change), {
    clock,
    warn: (message) => void warnings.push(message),
  })
  return { changes, warnings, clock, watch }
}

describe('files of secrets', () => {
  test('that are pipes are read at the start only, and delay no other', async () => {
    const folder = await folderWith({ secrets: OLD })
    execFileSync('mkfifo', [`${folder}/token`])
    const written = writeFile(`${folder}/token`, 'one\n')
    const { changes, warnings, watch } = await watched(folder)
    await written
    await writeFile(`${folder}/secrets`, NEW)
    await watch.check()
    expect(changes).toEqual([{ of: 'handler', name: 'app', secrets: [OLD, NEW] }])
    expect(warnings).toEqual([])
    watch.stop()
  })

  test('are read again when they change, and only then', async () => {
    const folder = await folderWith({ token: 'one', secrets: OLD })
    const { changes, watch } = await watched(folder)
    await watch.check()
    expect(changes).toEqual([])
    await writeFile(`${folder}/token`, 'two\n')
    await writeFile(`${folder}/secrets`, `${NEW}\n${OLD}\n`)
    await watch.check()
    await watch.check()
    expect(changes.toSorted((a, b) => a.of.localeCompare(b.of))).toEqual([
      { of: 'handler', name: 'app', secrets: [OLD, NEW, OLD] },
      { of: 'service.token', secrets: ['two'] },
    ])
    watch.stop()
  })

  test('may be swapped by a symbolic link up the path, as Kubernetes does', async () => {
    const folder = await folderWith({ secrets: OLD })
    for (const [version, token] of [
      ['v1', 'one'],
      ['v2', 'two'],
    ] as const) {
      await mkdir(`${folder}/${version}`)
      await writeFile(`${folder}/${version}/token`, token)
    }
    await symlink('v1', `${folder}/..data`)
    await symlink('..data/token', `${folder}/token`)
    const { changes, watch } = await watched(folder)
    await symlink('v2', `${folder}/..data_tmp`)
    await rename(`${folder}/..data_tmp`, `${folder}/..data`)
    await rm(`${folder}/v1`, { recursive: true })
    await watch.check()
    expect(changes).toEqual([{ of: 'service.token', secrets: ['two'] }])
    watch.stop()
  })

  test('that vanish, or have no valid secret, leave the old secret in use with one warning', async () => {
    const folder = await folderWith({ token: 'one', secrets: OLD })
    const { changes, warnings, watch } = await watched(folder)
    await rm(`${folder}/token`)
    await watch.check()
    await watch.check()
    expect(warnings).toEqual([expect.stringContaining('token does not exist; the last valid secret is used')])
    await writeFile(`${folder}/token`, 'half a tok')
    await watch.check()
    expect(warnings).toHaveLength(2)
    expect(warnings.join()).not.toContain('half a tok')
    await writeFile(`${folder}/token`, 'one')
    await watch.check()
    expect(changes).toEqual([])
    await rm(`${folder}/token`)
    await watch.check()
    expect(warnings).toHaveLength(3)
    watch.stop()
  })

  test('are checked at an interval until stopped, and never if there are none', async () => {
    const folder = await folderWith({ token: 'one', secrets: OLD })
    const { changes, clock, watch } = await watched(folder)
    await writeFile(`${folder}/token`, 'two')
    expect(clock.waiting).toHaveLength(1)
    clock.waiting.splice(0).forEach((run) => run())
    await expect.poll(() => changes).toHaveLength(1)
    await expect.poll(() => clock.waiting).toHaveLength(1)
    watch.stop()
    expect(clock.waiting).toEqual([])
    const { config } = await resolveConfig({ service: { base_url: 'https://a.b', token: 'x' } })
    watchSecrets(config, () => undefined, { clock, warn: () => undefined })
    expect(clock.waiting).toEqual([])
  })
})
