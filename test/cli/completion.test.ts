import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { folderWith } from '../config/folder.ts'
import { cli } from './process.ts'

const exec = promisify(execFile)
/** Milliseconds for a shell that starts and offers. */
const PATIENCE = 15_000

function isThere(shell: string): boolean {
  const there = spawnSync(shell, ['--version']).status === 0
  if (!there) process.stderr.write(`completion: there is no ${shell} here, its script is NOT tried\n`)
  return there
}

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

/** What is asked of every shell: the words so far, and what must be among the offers. */
const OFFERS: [string, string[]][] = [
  ['de', ['deliveries', 'dev']],
  ['handlers ', ['pause', 'resume']],
  ['deliveries retry --d', ['--dead', '--dry-run']],
  ['deliveries --status d', ['dead', 'delivered']],
  ['completion ', ['bash', 'fish', 'zsh']],
  ['check -c side', ['sidecar.yaml']],
]

describe.skipIf(!isThere('fish'))('fish', () => {
  test.each(OFFERS)('offers for "%s" what may follow', async (words, offers) => {
    const { out } = await cli(['completion', 'fish'])
    const folder = await folderWith({ 'completion.fish': out, 'sidecar.yaml': '' })
    const script = `source completion.fish; complete -C 'session-sidecar ${words}'`
    const { stdout } = await exec('fish', ['--no-config', '-c', script], { cwd: folder, timeout: PATIENCE })
    const offered = stdout.split('\n').map((line) => line.split('\t')[0])
    expect(offered).toEqual(expect.arrayContaining(offers))
  })
})

// Its script is bash's, so two of them will do.
describe.skipIf(!isThere('zsh'))('zsh', () => {
  test.each(OFFERS.slice(-2))('offers for "%s" what may follow', async (words, offers) => {
    const { out } = await cli(['completion', 'zsh'])
    const folder = await folderWith({
      completion: `autoload -Uz compinit && compinit -u -d ./dump\n${out}`,
      'sidecar.yaml': '',
      // It completes on a terminal only: one is made, a tab is typed, and what comes is read until all of it is there.
      'type.zsh': `zmodload zsh/zpty
zpty -b terminal zsh -f -i
read_until() {
  local seen='' part word
  for word in $@; do
    until [[ $seen == *$word* ]]; do zpty -rt terminal part && seen+=$part || sleep 0.05; done
  done
  print -r -- $seen
}
zpty -w terminal "source ./completion; bindkey '^I' list-choices; print REA''DY"
read_until READY > /dev/null
zpty -n -w terminal $'session-sidecar ${words}\\t'
read_until ${offers.join(' ')}
zpty -d terminal
`,
    })
    const { stdout } = await exec('zsh', ['-f', 'type.zsh'], { cwd: folder, timeout: PATIENCE })
    for (const offer of offers) expect(stdout).toContain(offer)
  })
})
