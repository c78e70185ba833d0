// Receives callbacks and runs a tool, in plain Node.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'

const secret = readFileSync('secret.txt', 'utf8').trim()
const key = Buffer.from(secret.replace('whsec_', ''), 'base64')

createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  // Verify first: anything that reaches this port could have sent it.
  if (!isGenuine(request.headers, body)) return response.writeHead(401).end()
  if (request.url === '/events') {
    takeEvent(JSON.parse(body))
    return response.writeHead(204).end()
  }
  response.end(JSON.stringify(lookupOrder(JSON.parse(body))))
}).listen(3000, '127.0.0.1')

/** The same event may come twice: a real app remembers `event.id` together with what it does. */
function takeEvent(event) {
  console.log(event.type, event.data.turn.status, event.data.session.title)
}

/** What is returned is what the model gets. */
function lookupOrder(call) {
  console.log(
    call.name,
    call.arguments.order_id,
    call.uncertain ? 'may have run before' : 'for the first time',
  )
  return { order_id: call.arguments.order_id, state: 'shipped' }
}

/** Standard Webhooks, over the raw bytes; the timestamp keeps old requests from being sent again. */
function isGenuine(headers, body) {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures = '' } = headers
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) < 300)) return false
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest()
  return signatures.split(' ').some((signature) => {
    const given = Buffer.from(signature.replace('v1,', ''), 'base64')
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}
