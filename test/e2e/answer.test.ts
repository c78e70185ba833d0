import { describe, expect, test } from 'vitest'
import { cli } from '../cli/process.ts'
import type { App } from '../support/app.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

const LONG = 'x'.repeat(20_480)

/** Answers of a handler that it means as 2xx, and what `deliveries show` says of them. */
const UNREADABLE: readonly [what: string, raw: string, reason: string][] = [
  ['20 KiB of headers', `HTTP/1.1 204 No Content\r\nx: ${LONG}\r\n\r\n`, 'its headers are too long'],
  ['a head that is cut off', 'HTTP/1.1 204 No Con', 'the connection closed before its end'],
  [
    'a body that is cut off',
    'HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{"verdict"',
    'the connection closed before its end',
  ],
  [
    'a chunked body that is cut off',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n',
    'the connection closed before its end',
  ],
  [
    'a folded header',
    'HTTP/1.1 200 OK\r\nx-a: b\r\n c\r\ncontent-length: 0\r\n\r\n',
    'a line of its head is not a header',
  ],
  [
    'a content-length beside a transfer-encoding',
    'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    'it has a length and a transfer encoding',
  ],
  [
    'another protocol',
    'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
    '101 Switching Protocols, which the request did not ask for',
  ],
  ['no HTTP', 'OK\r\n', 'it is not HTTP/1.1'],
]

const POLICY = { retry: { attempts: 2, base: '10ms', max: '20ms' } }

function answering(raw: string): App['handle'] {
  return ({ events: [event] }) => (event?.type === 'turn.completed' ? { raw } : {})
}

describe('an answer of a handler that cannot be read', () => {
  // [fault http-1]
  test.for(UNREADABLE)(
    'is a failed attempt with its reason, and the lane continues: %s',
    async ([, raw, reason]) => {
      await using rig = await Rig.open({ channels: ['poll'], handler: POLICY })
      rig.app.handle = answering(raw)
      await rig.client.start('say Hello')
      await rig.event('turn.settled')
      const [dead] = await until('dead letter', async () => {
        const rows = await rig.list('/api/deliveries?status=dead')
        return rows.length > 0 && rows
      })
      expect(dead).toMatchObject({ type: 'turn.completed', attempts: [{}, {}] })
      const url = rig.program?.admin ?? ''
      const { out } = await cli(['deliveries', 'show', String(dead?.['id']), '--url', url])
      expect(out.split(`the answer cannot be read: `)).toHaveLength(3)
      expect(out).toContain(reason)
      expect(await rig.list('/api/handlers')).toMatchObject([{ state: 'up' }])
      const attempts = rig.app.callbacks.flatMap(({ events: [event] }) =>
        event?.type === 'turn.completed' ? [event.delivery.attempt] : [],
      )
      expect(attempts).toEqual([1, 2])
      await until(
        'nothing pending',
        async () => (await rig.list('/api/deliveries?status=pending')).length === 0,
      )
      expect(await rig.list('/api/deliveries?status=dead')).toHaveLength(1)
    },
  )

  // [fault http-2]
  test.for([
    ['100 Continue', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['103 Early Hints', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'],
  ])('is not the interim %s before it', async ([, interim]) => {
    await using rig = await Rig.open({ channels: ['poll'], handler: POLICY })
    rig.app.handle = answering(`${interim}HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n`)
    await rig.client.start('say Hello')
    await rig.event('turn.settled')
    const path = '/api/deliveries?status=delivered'
    const delivered = await until('all of it', async () => {
      const rows = await rig.list(path)
      return rows.some(({ type }) => type === 'turn.settled') && rows
    })
    const turn = delivered.find(({ type }) => type === 'turn.completed')
    expect(turn?.['attempts']).toMatchObject([{ status: 204 }])
    expect(await rig.list('/api/deliveries?status=dead')).toEqual([])
  })
})
