import { once } from 'node:events'
import { connect } from 'node:net'
import { Worker } from 'node:worker_threads'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/system/clock.ts'
import { createHttp } from '../../src/system/http.ts'

/** Answers each request at once, in a thread of its own. */
const SERVER = `
  const { createServer } = require('node:http')
  const { parentPort } = require('node:worker_threads')
  const server = createServer((request, response) => response.end('{}'))
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))
`

/** A slow fsync stops the event loop. */
function stall(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

async function serve(): Promise<number> {
  const worker = new Worker(SERVER, { eval: true })
  onTestFinished(async () => void (await worker.terminate()))
  const [port] = (await once(worker, 'message')) as [number]
  return port
}

test('an answer that came while the event loop stood still is no timeout', async () => {
  const http = createHttp()
  onTestFinished(() => http.close())
  const url = `http://127.0.0.1:${await serve()}/`
  const ask = () => http.exchange({ method: 'GET', url, headers: {}, timeout: 200, maxBody: 100 })
  await ask()
  const asking = ask()
  // The request is on its way.
  await new Promise((resolve) => void setImmediate(resolve))
  stall(500)
  expect((await asking).status).toBe(200)
})

test('a timer that is late fires after what came meanwhile', async () => {
  const socket = connect(await serve(), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  const happened: string[] = []
  const fired = new Promise<void>((resolve) => {
    systemClock().after(200, () => {
      happened.push('timer')
      resolve()
    })
  })
  socket.once('data', () => happened.push('answer'))
  socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
  await new Promise((resolve) => void setImmediate(resolve))
  stall(500)
  await fired
  expect(happened).toEqual(['answer', 'timer'])
})
