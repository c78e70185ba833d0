import { execFile } from 'node:child_process'
import { globSync } from 'node:fs'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { ROOT } from '../readme/document.ts'

const run = promisify(execFile)
/** They compile and copy: any Node does. */
const ANY_NODE = ['build', 'package']

test('every script that runs our code has the Node that the install brought before any other', () => {
  const others = Object.entries(manifest.scripts).filter(([, text]) => !text.startsWith('. .ci/node24 && '))
  expect(others.map(([name]) => name)).toEqual(ANY_NODE)
})

test.skipIf(globSync('node_modules/node-linux-*', { cwd: ROOT }).length === 0)(
  'that Node is found where npm did not link it',
  async () => {
    const env = { PATH: '/usr/bin:/bin' }
    const { stdout } = await run('sh', ['-c', '. .ci/node24 && command -v node'], { cwd: ROOT, env })
    expect(stdout).toMatch(/\/node_modules\/node-linux-[a-z0-9]+\/bin\/node$/m)
  },
)
