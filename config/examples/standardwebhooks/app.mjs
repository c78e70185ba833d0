// Receives callbacks and runs a tool. The package `standardwebhooks` verifies the signatures.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { Webhook } from 'standardwebhooks'

const webhook = new Webhook(readFileSync('secret.txt', 'utf8').trim())

createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  let message
  try {
    message = webhook.verify(Buffer.concat(chunks).toString(), request.headers)
  } catch {
    return response.writeHead(401).end()
  }
  if (message.type === 'tool.call') {
    console.log(message.name, message.arguments.order_id, 'for the first time')
    return response.end(JSON.stringify({ order_id: message.arguments.order_id, state: 'shipped' }))
  }
  console.log(message.type, message.data.turn.status, message.data.session.title)
  response.writeHead(204).end()
}).listen(3000, '127.0.0.1')
