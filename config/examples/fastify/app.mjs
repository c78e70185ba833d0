// Receives callbacks and runs a tool, with Fastify. The package `standardwebhooks` verifies the signatures.
import { readFileSync } from 'node:fs'
import fastify from 'fastify'
import { Webhook } from 'standardwebhooks'

const webhook = new Webhook(readFileSync('secret.txt', 'utf8').trim())
// A session may have 16 MiB.
const app = fastify({ bodyLimit: 32 * 1024 * 1024 })

// The signature covers the bytes of the body, so they are parsed after it is verified.
app.removeAllContentTypeParsers()
app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body))
app.addHook('preHandler', async (request, reply) => {
  try {
    request.body = webhook.verify(request.body, request.headers)
  } catch {
    return reply.code(401).send()
  }
})

// The same event may come twice: store event.id together with what you do.
app.post('/events', async ({ body: event }, reply) => {
  console.log(event.type, event.data.turn.status, event.data.session.title)
  reply.code(204)
})

// The model gets what the tool returns.
app.post('/tools/lookup_order', async ({ body: call }) => {
  console.log(call.name, call.arguments.order_id, 'for the first time')
  return { order_id: call.arguments.order_id, state: 'shipped' }
})

await app.listen({ port: 3000, host: '127.0.0.1' })
