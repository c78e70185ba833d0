import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { folderWith } from '../config/folder.ts'
import { cli } from './process.ts'

const exec = promisify(execFile)

/** What bash offers for the last of `words`. */
async function complete(folder: string, ...words: string[]): Promise<string[]> {
  const script =
    'source ./completion; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _session_sidecar; printf "%s\\n" "${COMPREPLY[@]}"'
  const { stdout } = await exec('bash', ['-c', script, 'bash', 'session-sidecar', ...words], { cwd: folder })
  return stdout.trim().split('\n')
}

test('bash completes commands, options, choices and files', async () => {
  const { code, out, err } = await cli(['completion', 'bash'])
  expect({ code, err }).toEqual({ code: 0, err: '' })
  const folder = await folderWith({ completion: out, 'sidecar.yaml': '' })
  expect(await complete(folder, 'de')).toEqual(['dev', 'deliveries'])
  expect(await complete(folder, 'handlers', '')).toEqual(
    expect.arrayContaining(['pause', 'resume', '--json']),
  )
  expect(await complete(folder, 'handlers', 'pause', '--')).not.toContain('resume')
  expect(await complete(folder, 'deliveries', 'retry', '--d')).toEqual(['--dead', '--dry-run'])
  expect(await complete(folder, 'deliveries', '--status', 'd')).toEqual(['delivered', 'dead'])
  expect(await complete(folder, 'check', '-c', 'side')).toEqual(['sidecar.yaml'])
  expect(await complete(folder, '--json', 'stat')).toEqual(['status'])
})

test('every command and option of the help is offered', async () => {
  const { out } = await cli(['completion', 'bash'])
  const help = (await cli(['--help'])).out
  const commands = [...(help.split('Commands:')[1] ?? '').matchAll(/^ {2}(\w+)/gm)].map(
    ([, name = '']) => name,
  )
  expect(commands.length).toBeGreaterThan(15)
  for (const name of commands) expect(out).toMatch(new RegExp(`offered='[^']*\\b${name}\\b`))
})

for (const shell of ['zsh', 'fish']) {
  const there = spawnSync(shell, ['--version']).status === 0
  if (!there) process.stderr.write(`completion: there is no ${shell} here, its script is NOT tried\n`)

  test.skipIf(!there)(`${shell} can read its script`, async () => {
    const { out } = await cli(['completion', shell])
    const folder = await folderWith({ completion: out })
    expect((await exec(shell, ['-n', 'completion'], { cwd: folder })).stderr).toBe('')
  })
}
