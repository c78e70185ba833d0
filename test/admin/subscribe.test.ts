import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { usualSubscription } from '../../src/sidecar/admin/relay/subscribe.ts'

it.each([
  ['/v1/events', { sessionId: null, cursor: null, transient: true }],
  ['/v1/events?last_event_id=007', { sessionId: null, cursor: '007', transient: true }],
  ['/v1/events?transient=0', { sessionId: null, cursor: null, transient: false }],
  ['/v1/sessions/s-a/events?last_event_id=0', { sessionId: 's-a', cursor: '0', transient: true }],
])('the usual form of a subscription is read: %s', (url, subscription) => {
  expect(usualSubscription(url)).toEqual(subscription)
})

it.each([
  '/v1/events/',
  '/v1/events?last_event_id=1transient=0',
  '/v1/events?last_event_id=1&transient=0',
  '/v1/events?last_event_id=x',
  `/v1/events?last_event_id=${'1'.repeat(41)}`,
  '/v1/events?cursor=1',
  '/v1/sessions//events',
  '/v1/sessions/a%2Fb/events',
  `/v1/sessions/${'a'.repeat(513)}/events`,
])('another form is left to the app: %s', (url) => {
  expect(usualSubscription(url)).toBeNull()
})

const TWO_REQUESTS = `
  import { createRequire } from 'node:module'
  import { get } from 'node:http'
  import { once } from 'node:events'
  import { createAdmin } from './src/sidecar/admin/server.ts'
  const quiet = { warn() {}, error() {} }
  const relay = { checkRoom() {}, open: (_subscription, response) => response.end('retry: 1'), close() {} }
  const admin = createAdmin({
    listen: { host: '127.0.0.1', port: 0 }, token: () => null, relay, log: quiet, version: '1', store: {}, actions: {},
    status: () => ({}), ready: () => ({ checks: [] }), started: () => true, metrics: { scrape: async () => '' },
  })
  const { port } = await admin.listen()
  const { cache } = createRequire(import.meta.url)
  const loaded = []
  for (const path of ['/v1/events', '/api/status']) {
    const [answer] = await once(get({ port, path, host: '127.0.0.1' }), 'response')
    answer.resume()
    await once(answer, 'end')
    loaded.push([answer.statusCode, Object.keys(cache).some((file) => file.endsWith('fastify.js'))])
  }
  process.stdout.write(JSON.stringify(loaded))
  process.exit()
`

it('a stream begins without the app, which takes as long to load as the rest of the sidecar', () => {
  const args = ['--input-type=module', '-e', TWO_REQUESTS]
  const cwd = new URL('../../', import.meta.url)
  expect(JSON.parse(execFileSync(process.execPath, args, { cwd, encoding: 'utf8' }))).toEqual([
    [200, false],
    [200, true],
  ])
})
