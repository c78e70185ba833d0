import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { DATA } from './workbench.ts'

/** Queues on PostgreSQL that one would use in our place. With what they need they are 70 packages: no part of a clone. */
const VERSIONS = { 'graphile-worker': '0.18.0', 'pg-boss': '12.38.0' }

export type Queue = 'graphile-worker' | 'graphile-worker, ordered' | 'pg-boss'

/** Installs them below data/ when they are not there. @returns their folder */
export function installQueues(): string {
  const versions = Object.entries(VERSIONS).map(([name, version]) => `${name}@${version}`)
  const folder = path.join(DATA, 'queues', versions.join('+'))
  if (existsSync(path.join(folder, 'node_modules'))) return folder
  mkdirSync(folder, { recursive: true })
  writeFileSync(path.join(folder, 'package.json'), '{"private":true}')
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--silent']
  const installed = spawnSync('npm', ['install', ...flags, ...versions], { cwd: folder, encoding: 'utf8' })
  if (installed.status !== 0) throw new Error(`npm install ${versions.join(' ')}: ${installed.stderr}`)
  return folder
}
