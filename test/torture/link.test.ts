import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { freePort } from '../support/listen.ts'
import { Chance } from '../simulation/chance.ts'
import { Link, STROKES } from './link.ts'

/** Says back what it hears. */
let echo: Server
let link: Link
let client: Socket
let heard: string
let over: string

beforeEach(async () => {
  echo = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined)
    socket.pipe(socket)
  }).listen(0, '127.0.0.1')
  await once(echo, 'listening')
  // Every connection is met.
  const chance = Object.assign(new Chance(1, 'test'), { some: <T>(list: readonly T[]) => [...list] })
  link = await Link.open(await freePort(), (echo.address() as AddressInfo).port, chance)
  client = await open()
})

afterEach(async () => {
  client.destroy()
  await link[Symbol.asyncDispose]()
  echo.close()
})

async function open(): Promise<Socket> {
  heard = ''
  over = ''
  const socket = connect(link.port, '127.0.0.1')
  socket.on('data', (bytes) => (heard += bytes.toString()))
  socket.on('error', (error: NodeJS.ErrnoException) => (over = String(error.code)))
  socket.on('end', () => (over = 'end'))
  await once(socket, 'connect')
  socket.write('one')
  await expect.poll(() => heard).toBe('one')
  return socket
}

describe('a line between two processes', () => {
  test('passes bytes on, and the end', async () => {
    client.end('two')
    await expect.poll(() => over).toBe('end')
    expect(heard).toBe('onetwo')
  })

  test('can be cut', async () => {
    link.strike('cut')
    await expect.poll(() => over).toBe('end')
  })

  test('can be reset', async () => {
    link.strike('reset')
    await expect.poll(() => over).toBe('ECONNRESET')
  })

  test('breaks in the middle of what it passes', async () => {
    link.strike('halve')
    client.write('0123456789')
    await expect.poll(() => over).toBe('ECONNRESET')
    expect(heard.length).toBeLessThan('one0123456789'.length)
  })

  test('holds everything back while it is stalled, and passes it on afterwards', async () => {
    await link.ail('stall')
    client.write('two')
    // In the time that another needs for the whole way.
    const direct = connect((echo.address() as AddressInfo).port, '127.0.0.1')
    direct.write('ping')
    await once(direct, 'data')
    direct.destroy()
    expect(heard).toBe('one')
    await link.restore()
    await expect.poll(() => heard).toBe('onetwo')
  })

  test('gives up what it held for a client that hung up', async () => {
    const arrived: string[] = []
    echo.on('connection', (socket: Socket) => socket.on('data', (bytes) => arrived.push(bytes.toString())))
    await link.ail('stall')
    client.end('two')
    await expect.poll(() => client.destroyed).toBe(true)
    await link.restore()
    client = await open()
    expect(arrived).toEqual(['one'])
  })

  test('refuses new connections and keeps those that are open', async () => {
    await link.ail('refuse')
    const refused = connect(link.port, '127.0.0.1')
    const [error] = (await once(refused, 'error')) as [NodeJS.ErrnoException]
    expect(error.code).toBe('ECONNREFUSED')
    client.write('two')
    await expect.poll(() => heard).toBe('onetwo')
    await link.restore()
    client.destroy()
    client = await open()
  })

  test('opens again where two faults end at once', async () => {
    await link.ail('refuse')
    await Promise.all([link.restore(), link.restore()])
    client.destroy()
    client = await open()
    await link.ail('refuse')
    const ended = link.restore()
    await link.ail('refuse')
    await ended
    expect(link.ailing).toBe(true)
  })

  test('reports when it was disturbed', () => {
    const before = Date.now()
    expect(link.quiet(before - 1000, before)).toBe(true)
    link.strike('reset')
    expect(link.quiet(before - 1000, Date.now() + 1)).toBe(false)
  })

  test('counts the connections that a fault met', () => {
    expect(STROKES.map((stroke) => link.strike(stroke))).toEqual(STROKES.map(() => 1))
  })
})
