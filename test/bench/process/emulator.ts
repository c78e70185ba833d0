import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { startEmulator } from '../../../src/emulator/index.ts'
import { serve } from './serve.ts'

/** The emulator alone, without a rate limit: no other load runs in its process. */

const AMPLE = 1_000_000

const Message = Type.Object({ text: Type.String() })

const emulator = await startEmulator({
  limits: {
    sessions: AMPLE,
    creationBurst: AMPLE,
    creationPerSecond: AMPLE,
    readsBurst: AMPLE,
    readsPerSecond: AMPLE,
  },
})

serve({
  address: () => ({ url: emulator.baseUrl, token: emulator.token }),
  connected: () => emulator.openStreams() > 0,
  /** How many sessions are idle, of how many there are. */
  sessions() {
    const { sessions } = emulator.ledger(Number.MAX_SAFE_INTEGER)
    return { idle: sessions.filter(({ status }) => status === 'idle').length, all: sessions.length }
  },
  /** Sends a message to a session of its own, over its own socket. */
  async send(argument) {
    const { text } = Value.Parse(Message, argument)
    const headers = { authorization: `Bearer ${emulator.token}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ input: { text } })
    const reply = await fetch(`${emulator.baseUrl}/v1/sessions`, { method: 'POST', headers, body })
    if (!reply.ok) throw new Error(`a session was answered ${reply.status}: ${await reply.text()}`)
    await reply.arrayBuffer()
  },
})
