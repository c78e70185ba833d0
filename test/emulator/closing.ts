// Leaves an emulator with everything under way, closes it, and must then come to its end by itself.
import { startEmulator } from '../../src/emulator/index.ts'

const emulator = await startEmulator({ allowHttpWebhooks: true })
const call = (path: string, body: unknown): Promise<Response> =>
  fetch(emulator.baseUrl + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${emulator.token}`,
      'content-type': 'application/json',
      connection: 'close',
    },
    body: JSON.stringify(body),
  })

// No server listens there: the delivery stays pending.
await call('/v1/webhooks', { url: 'http://127.0.0.1:9/hook', events: [] })
for (const text of [
  'hang',
  'call f {}',
  'ask Which colour?',
  'wait 2h',
  'collect 1h\nwrite outputs/a.txt hi',
]) {
  const response = await call('/v1/sessions', { input: { text } })
  if (response.status !== 201) throw new Error(await response.text())
}
await emulator.advance(6 * 60_000)
await emulator.close()
process.stdout.write('closed\n')
