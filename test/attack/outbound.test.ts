import { describe, expect, test } from 'vitest'
import { listen } from '../support/listen.ts'
import { Rig } from '../support/rig.ts'
import { SECRET } from '../support/app.ts'
import { until } from '../support/until.ts'

describe('what the sidecar sends out', () => {
  // [fault callback-3]
  test('follows no redirect of a handler or a tool, and fetches no address that an event names', async () => {
    let trapped = 0
    await using trap = await listen((_request, response) => {
      trapped++
      response.end()
    })
    await using rig = await Rig.open({ tools: { lookup_order: { retry: { attempts: 1 } } } })
    const statuses = [301, 302, 303, 307, 308]
    let next = 0
    const redirect = () => ({
      status: statuses[next++ % statuses.length] ?? 302,
      headers: { location: `${trap.url}/to` },
    })
    rig.app.handle = (_callback, nth) => (nth === 1 ? redirect() : {})
    rig.app.run = redirect
    const session = await rig.client.withTools(
      { lookup_order: null },
      { title: trap.url, metadata: { url: trap.url, webhook: trap.url } },
    )
    const link = `${trap.url}/from-event`
    await rig.client.send(
      session,
      `say ${link} <img src="${link}">`,
      `call lookup_order {"url":"${link}","callback_url":"${link}"}`,
      'say {{last}}',
    )
    await rig.event('turn.settled')
    expect(next).toBeGreaterThan(5)
    expect(trapped).toBe(0)
    expect(rig.emulator.ledger().answers).toMatchObject([{ output: null, error: expect.any(String) }])
  })

  // [fault callback-4]
  test('reads 64 KiB of an answer of 1 GiB and closes the connection; other callbacks continue', async () => {
    let sent = 0
    let cut = 0
    const chunk = Buffer.alloc(64 * 1024, 120)
    await using endless = await listen((request, response) => {
      request.resume()
      response.writeHead(200, { 'content-length': String(1024 ** 3) })
      const more = (): void => {
        while (!response.destroyed && sent < 1024 ** 3) {
          sent += chunk.length
          if (!response.write(chunk)) return
        }
      }
      response.on('drain', more).on('close', () => cut++)
      more()
    })
    await using rig = await Rig.open({
      handlers: (app) => [
        { name: 'endless', url: endless.url, secret: SECRET, events: ['turn.completed'] },
        { name: 'app', url: app.handlerUrl('app'), secret: SECRET },
      ],
    })
    await rig.client.start('say Hello')
    await rig.event('turn.settled')
    await until('closed connection', () => cut > 0)
    // What the network between us holds is more than what is read.
    expect(sent).toBeLessThan(32 * 1024 * 1024)
    const done = async () => (await rig.list('/api/deliveries?status=pending&handler=endless')).length === 0
    await until('delivery that is done', done)
  })
})
