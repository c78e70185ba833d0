import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import type { Listener } from '../../src/sidecar/admin/listener.ts'
import { createWebhookListener } from '../../src/sidecar/admin/webhooks.ts'
import { until } from '../support/until.ts'
import { startAdmin } from './running.ts'
import { memoryLog } from './seed.ts'

/** Less than Node, the proxies before us, or Kubernetes would wait, milliseconds. */
const SOON = 2000

async function connected(port: number, bytes: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined).resume()
  await once(socket, 'connect')
  if (bytes !== '') socket.write(bytes)
  return socket
}

async function timeOf(close: () => Promise<unknown>): Promise<number> {
  const begun = performance.now()
  await close()
  return performance.now() - begun
}

const HALVES = [
  ['nothing', ''],
  ['half a request', 'POST /hooks HTTP/1.1\r\nhost: local'],
  ['a request that was answered', 'GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n'],
] as const

it.each(HALVES)('the admin listener closes at once beside a connection that sent %s', async (_, bytes) => {
  const running = await startAdmin()
  const port = Number(new URL(running.base).port)
  const sockets = await Promise.all([connected(port, bytes), connected(port, bytes)])
  await running.get('/livez')
  expect(await timeOf(() => running.stop())).toBeLessThan(SOON)
  await until('closed connections', () => sockets.every(({ closed }) => closed))
})

it.each(HALVES)('the webhook listener closes at once beside a connection that sent %s', async (_, bytes) => {
  const listener: Listener = createWebhookListener({
    listen: { host: '127.0.0.1', port: 0 },
    path: '/hooks',
    screen: () => null,
    receive: (_delivery, answer) => answer({ status: 200, outcome: 'accepted' }),
    log: memoryLog(),
  })
  const { port } = await listener.listen()
  await connected(port, bytes)
  const delivered = await fetch(`http://127.0.0.1:${port}/hooks`, { method: 'POST', body: '{}' })
  expect(delivered.status).toBe(200)
  expect(await timeOf(() => listener.close())).toBeLessThan(SOON)
})

it('a body that never arrives delays the close by five seconds at most', async () => {
  const running = await startAdmin()
  await connected(
    Number(new URL(running.base).port),
    'POST /api/replay HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{',
  )
  await running.get('/livez')
  expect(await timeOf(() => running.stop())).toBeLessThan(5000 + SOON)
})
