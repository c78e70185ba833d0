// Receives callbacks and runs a tool, with Express. The package `standardwebhooks` verifies the signatures.
import { readFileSync } from 'node:fs'
import express from 'express'
import { Webhook } from 'standardwebhooks'

const webhook = new Webhook(readFileSync('secret.txt', 'utf8').trim())
const app = express()

// The signature covers the bytes of the body: use express.raw here, not express.json. A session may have 16 MiB.
app.use(express.raw({ type: () => true, limit: '32mb' }), (request, response, next) => {
  try {
    request.message = webhook.verify(request.body.toString(), request.headers)
  } catch {
    return response.sendStatus(401)
  }
  next()
})

// The same event may come twice: store event.id together with what you do.
app.post('/events', ({ message: event }, response) => {
  console.log(event.type, event.data.turn.status, event.data.session.title)
  response.sendStatus(204)
})

// The model gets what the tool returns.
app.post('/tools/lookup_order', ({ message: call }, response) => {
  console.log(call.name, call.arguments.order_id, 'for the first time')
  response.json({ order_id: call.arguments.order_id, state: 'shipped' })
})

app.listen(3000, '127.0.0.1')
