import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'

const ONE_REQUEST = `
  const { exchange } = await import('./src/cli/exchange.ts')
  await exchange('http://127.0.0.1:9', { method: 'GET', headers: {} }).catch(() => undefined)
  const loaded = (name) => process.moduleLoadList.some((one) => one.endsWith(name))
  process.stdout.write(JSON.stringify({ http: loaded(' http'), fetch: loaded(' internal/deps/undici/undici') }))
`

it('a command’s request does not load the fetch of Node, which takes as long as the command', () => {
  const args = ['--input-type=module', '-e', ONE_REQUEST]
  const cwd = new URL('../../', import.meta.url)
  expect(JSON.parse(execFileSync(process.execPath, args, { cwd, encoding: 'utf8' }))).toEqual({
    http: true,
    fetch: false,
  })
})
