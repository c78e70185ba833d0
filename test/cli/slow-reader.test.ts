import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url))

/** Longer than the program waits for what else is under way, milliseconds. */
const SLOW = 1500

test('a slow reader gets all of it', async () => {
  await using rig = await Rig.open({ channels: ['stream', 'poll'] })
  await rig.client.start(...Array.from({ length: 8 }, (_, n) => `say ${n} ${'x'.repeat(100_000)}`))
  await until(
    'a long transcript',
    async () => (await rig.list('/api/events?type=agent.message')).length === 8,
  )
  const child = spawn(
    process.execPath,
    [MAIN, 'events', '-n', '100', '--type', 'agent.message', '--json', '--url', rig.program?.admin ?? ''],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const ended = new Promise((resolve) => child.once('close', resolve))
  const first = await new Promise<Buffer>((resolve) => child.stdout.once('data', resolve))
  child.stdout.pause()
  await pause(SLOW)
  let text = first.toString()
  child.stdout.on('data', (bytes: Buffer) => (text += bytes.toString())).resume()
  expect(await ended).toBe(0)
  const rows = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { type: string })
  expect(rows.map(({ type }) => type)).toEqual(Array.from({ length: 8 }, () => 'agent.message'))
})
