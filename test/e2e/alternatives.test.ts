import { text } from 'node:stream/consumers'
import { onTestFinished, expect, test } from 'vitest'
import { createClient, type Client } from '../../src/client/index.ts'
import { startEmulator, type Emulator } from '../../src/emulator/index.ts'
import { listen } from '../support/listen.ts'
import { until } from '../support/until.ts'

// What src/sidecar/README.md (What a crash does) states of an app without the sidecar. test/cli/crash.test.ts and
// test/e2e/kill.test.ts show the same crashes with it.

const CALL = 'call refund_order {"order_id":"42"}\nsay It is {{last}}'

interface Service {
  emulator: Emulator
  client: Client
}

async function open(): Promise<Service> {
  const emulator = await startEmulator({ allowHttpWebhooks: true })
  const client = createClient({ baseUrl: emulator.baseUrl, token: emulator.token })
  onTestFinished(async () => {
    await client.close()
    await emulator.close()
  })
  return { emulator, client }
}

/** A session that waits for its call, which expires after a minute. */
async function waiting(client: Client): Promise<string> {
  const { id } = await client.sessions.create({
    agent: { tools: [{ type: 'function', name: 'refund_order', parameters: {}, timeout_seconds: 60 }] },
  })
  await client.sessions.send(id, CALL)
  await reached(client, id, 'requires_action')
  return id
}

async function reached(client: Client, id: string, status: string): Promise<void> {
  await until(`the session is ${status}`, async () => (await client.sessions.get(id)).status === status)
}

/** A receiver of webhooks; `respond` gives the status for the one that reports the call, null for a crash before any. */
async function receiver(client: Client, respond: (nth: number) => number | null): Promise<string[]> {
  const reports: string[] = []
  const app = await listen((request, response) => {
    void text(request).then((body) => {
      const status = body.includes('session.action_required') ? respond(reports.push(body)) : 204
      if (status === null) response.destroy()
      else response.writeHead(status).end()
    })
  })
  onTestFinished(() => app[Symbol.asyncDispose]())
  await client.webhooks.create({ url: `${app.url}/hook` })
  return reports
}

/** One pass of a polling loop: runs the tool for each listed call, then posts its result. */
async function poll({ client }: Service, run: (callId: string) => unknown): Promise<void> {
  for await (const { id } of client.sessions.list())
    for (const action of (await client.sessions.get(id)).required_actions)
      if (action.type === 'function_call')
        await client.actions.answer(id, action.call_id, { output: run(action.call_id) })
}

test('a webhook that was accepted before a crash is not sent again: the call waits until it expires', async () => {
  const { emulator, client } = await open()
  const reports = await receiver(client, () => 204)
  const id = await waiting(client)
  await until('the webhook', () => reports.length === 1)
  await emulator.advance(58_000)
  expect((await client.sessions.get(id)).status).toBe('requires_action')
  await emulator.advance(5000)
  await reached(client, id, 'idle')
  expect(reports).toHaveLength(1)
  expect(emulator.ledger().actions).toMatchObject([{ resolution: { kind: 'expired' } }])
})

test('a webhook that is accepted after the work is sent again after a crash, and does not say so', async () => {
  const { emulator, client } = await open()
  const reports = await receiver(client, (nth) => (nth === 1 ? null : 204))
  await waiting(client)
  await until('the webhook', () => reports.length === 1)
  await emulator.advance(50_000)
  await until('the webhook again', () => reports.length === 2)
  expect(reports[1]).toBe(reports[0])
})

test('a polling loop runs a tool again after a crash, without a sign', async () => {
  const service = await open()
  const id = await waiting(service.client)
  const runs: string[] = []
  const crash = poll(service, (callId) => {
    runs.push(callId)
    throw new Error('a crash')
  })
  await expect(crash).rejects.toThrow('a crash')
  await poll(service, (callId) => runs.push(callId))
  expect(runs).toEqual([runs[0], runs[0]])
  await reached(service.client, id, 'idle')
})

test('a polling loop that reads first posts no answer twice', async () => {
  const service = await open()
  const id = await waiting(service.client)
  await poll(service, () => 'refunded')
  await reached(service.client, id, 'idle')
  await poll(service, () => 'refunded')
  expect(service.emulator.ledger().answers).toHaveLength(1)
})

test('a reader that stores its position before the work loses the event of a crash', async () => {
  const { client } = await open()
  const id = await waiting(client)
  let position = '0'
  const read = async (work: (type: string) => void): Promise<void> => {
    for await (const { type, seq } of await client.sessions.events(id, { after: position })) {
      if (seq !== null) position = seq
      work(type)
      if (type === 'tool.required') return
    }
  }
  const crash = read((type) => {
    if (type === 'turn.started') throw new Error('a crash')
  })
  await expect(crash).rejects.toThrow('a crash')
  const handled: string[] = []
  await read((type) => void handled.push(type))
  expect(handled).not.toContain('turn.started')
})
