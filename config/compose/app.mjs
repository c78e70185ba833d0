// An app beside the sidecar, in plain Node: receives callbacks and answers one function tool.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

const key = Buffer.from((process.env.CALLBACK_SECRET ?? '').replace('whsec_', ''), 'base64')

const server = createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  if (!isGenuine(request.headers, body)) return response.writeHead(401).end()
  const message = JSON.parse(body.toString())
  if (request.url === '/agent-events') {
    // The same event may come twice. A real app stores message.id together with what it does.
    console.log('event', message.type, message.session_id)
    return response.writeHead(204).end()
  }
  if (request.url === '/tools/lookup_order') {
    // The same call may also come twice: message.call_id is its key.
    console.log('tool', message.name, message.call_id)
    return response.end(JSON.stringify({ order_id: message.arguments.order_id, state: 'shipped' }))
  }
  response.writeHead(404).end()
})
server.listen(Number(process.env.PORT ?? 3000))
process.once('SIGTERM', () => server.close())

function isGenuine(headers, body) {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures = '' } = headers
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) < 300)) return false
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest()
  return signatures.split(' ').some((signature) => {
    const given = Buffer.from(signature.replace('v1,', ''), 'base64')
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}
