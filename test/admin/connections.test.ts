import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { createWebhookListener } from '../../src/sidecar/admin/webhooks.ts'
import { until } from '../support/until.ts'
import { memoryLog } from './seed.ts'

const REQUEST = 'POST /hooks HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}'

/** A listener with four connections, which answers once it is released. */
async function listener() {
  let release: () => void = () => undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  const log = memoryLog()
  const listening = createWebhookListener({
    listen: { host: '127.0.0.1', port: 0 },
    path: '/hooks',
    screen: () => null,
    receive(_delivery, answer) {
      served++
      void released.then(() => answer({ status: 200, outcome: 'accepted' }))
    },
    log,
    connections: 4,
  })
  let served = 0
  const { port } = await listening.listen()
  onTestFinished(async () => {
    release()
    await listening.close()
  })
  return { port, release, log, served: () => served }
}

async function open(port: number, from = '127.0.0.1'): Promise<Socket & { text: string }> {
  const socket = Object.assign(connect({ port, host: '127.0.0.1', localAddress: from }), { text: '' })
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined).on('data', (chunk: Buffer) => (socket.text += chunk.toString()))
  await once(socket, 'connect')
  return socket
}

it('closes the connection that has gone longest without a request when all are in use', async () => {
  const { port, release, log } = await listener()
  release()
  const used = await open(port)
  used.write(REQUEST)
  await until('an answer', () => used.text.includes(' 200 '))
  const idle = [await open(port), await open(port), await open(port)]
  const fresh = await open(port)
  await until('an eviction', () => idle[0]?.closed === true)
  fresh.write(REQUEST)
  await until('an answer', () => fresh.text.includes(' 200 '))
  expect([used.closed, ...idle.map(({ closed }) => closed)]).toEqual([false, true, false, false])
  expect(log.lines.map(({ level, details }) => [level, details])).toEqual([
    ['warn', { times: 1, connections: 4 }],
  ])
})

it('closes connections of the address with the most connections first', async () => {
  const { port } = await listener()
  const lone = await open(port, '127.0.0.2')
  const crowd = [await open(port), await open(port), await open(port)]
  await open(port, '127.0.0.3')
  await until('an eviction', () => crowd[0]?.closed === true)
  expect([lone.closed, ...crowd.map(({ closed }) => closed)]).toEqual([false, true, false, false])
})

it('closes no connection whose request is being served: if all are, it closes the new one', async () => {
  const { port, release, log, served } = await listener()
  const busy = [await open(port), await open(port), await open(port), await open(port)]
  for (const socket of busy) socket.write(REQUEST)
  await until('requests', () => served() === 4)
  const late = await open(port)
  await until('a refusal', () => late.closed)
  release()
  await until('answers', () => busy.every(({ text }) => text.includes(' 200 ')))
  expect(log.lines.map(({ message }) => message)).toEqual([
    'webhooks: all connections are being served; new ones were closed',
  ])
})

it('a connection whose body stops arriving is not kept', async () => {
  const { port } = await listener()
  const slow = await open(port)
  slow.write('POST /hooks HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n{')
  const rest = [await open(port), await open(port), await open(port)]
  await open(port)
  await until('an eviction', () => slow.closed)
  expect(rest.some(({ closed }) => closed)).toBe(false)
})
