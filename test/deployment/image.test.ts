import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { freePort } from '../support/listen.ts'
import { Rig } from '../support/rig.ts'
import { command, healthCheck, image, instruction, ROOT, stages, text } from './documents.ts'

test('the image is Node 24 and one user who may write in one folder', () => {
  expect(stages().map(({ base }) => base)).toEqual(['node:24-slim', 'node:24-slim', 'node:24-slim'])
  expect(instruction('USER')).toBe('65532:65532')
  expect(instruction('VOLUME')).toBe('["/app/data"]')
  expect(
    stages()
      .at(-1)
      ?.instructions.find((one) => one.name === 'ENV' && one.text.includes('STORE'))?.text,
  ).toBe('SIDECAR_STORE_BASE=/app')
  expect(instruction('EXPOSE')).toBe('8480 8481')
  expect(command()).toEqual(['node', 'dist/main.js', 'run', '-c', '/etc/sidecar/sidecar.yaml'])
})

test('the image has no dev and no optional packages, and runs no install script', () => {
  const installs = stages().flatMap(({ name, instructions }) =>
    instructions.filter((one) => one.text.startsWith('npm ci')).map((one) => [name, one.text]),
  )
  expect(installs).toEqual([
    ['build', 'npm ci --ignore-scripts --loglevel=notice'],
    ['dependencies', 'npm ci --omit=dev --omit=optional --ignore-scripts --loglevel=notice'],
  ])
  const copied = image().instructions.filter((one) => one.name === 'COPY')
  expect(copied.find((one) => one.text.includes('node_modules'))?.text).toContain('--from=dependencies')
})

test('what the image copies is there and not ignored', () => {
  const allowed = text('.dockerignore')
    .split('\n')
    .flatMap((line) => (line.startsWith('!') ? [line.slice(1)] : []))
  const sources = stages()
    .flatMap(({ instructions }) => instructions)
    .filter((one) => one.name === 'COPY' && !one.text.startsWith('--from='))
    .flatMap((one) => one.text.split(' ').slice(0, -1))
  expect(sources.length).toBeGreaterThan(5)
  expect(sources.filter((source) => !existsSync(path.join(ROOT, source)))).toEqual([])
  expect(sources.filter((source) => !allowed.includes(source.split('/')[0] ?? ''))).toEqual([])
})

test('the health check distinguishes a ready sidecar from a missing one', async () => {
  await using rig = await Rig.open({ channels: ['poll'] })
  const [program = '', ...args] = healthCheck()
  const check = (port: string | number): Promise<number | null> =>
    new Promise((resolve) => {
      const env = { PATH: process.env['PATH'], SIDECAR_ADMIN__LISTEN: `0.0.0.0:${port}` }
      spawn(program, args, { env, stdio: 'ignore' }).once('close', resolve)
    })
  expect(await check(new URL(rig.program?.admin ?? '').port)).toBe(0)
  expect(await check(await freePort())).toBe(1)
})
