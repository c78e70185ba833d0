import { createParser } from 'eventsource-parser'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { request } from 'undici'
import { serve } from './serve.ts'

/** Function calls by hand: on `tool.required` read the session, run its tool over HTTP, post the answer. Nothing is stored. */

const Follow = Type.Object({
  service: Type.String(),
  token: Type.String(),
  answerPath: Type.String(),
  tool: Type.String(),
})
const Required = Type.Object({ type: Type.Literal('tool.required'), session_id: Type.String() })
const Session = Type.Object({
  required_actions: Type.Array(
    Type.Object({ type: Type.String(), call_id: Type.String(), arguments: Type.Optional(Type.Unknown()) }),
  ),
})

serve({
  follow(argument) {
    follow(Value.Parse(Follow, argument)).catch((error: unknown) => {
      throw error
    })
  },
})

async function follow({ service, token, answerPath, tool }: Type.Static<typeof Follow>): Promise<void> {
  const authorization = `Bearer ${token}`
  const json = { authorization, 'content-type': 'application/json' }

  const answer = async (sessionId: string): Promise<void> => {
    const session = await request(`${service}/v1/sessions/${sessionId}`, { headers: { authorization } })
    for (const action of Value.Parse(Session, await session.body.json()).required_actions) {
      if (action.type !== 'function_call') continue
      const run = await request(tool, {
        method: 'POST',
        headers: json,
        body: JSON.stringify(action.arguments),
      })
      const reply = await request(service + answerPath.replace('{session_id}', sessionId), {
        method: 'POST',
        headers: json,
        body: JSON.stringify({ call_id: action.call_id, output: await run.body.text() }),
      })
      await reply.body.dump()
    }
  }

  const { body } = await request(`${service}/v1/events`, {
    headers: { accept: 'text/event-stream', authorization },
    bodyTimeout: 0,
  })
  const parser = createParser({
    onEvent({ data }) {
      const frame: unknown = JSON.parse(data)
      if (Value.Check(Required, frame)) void answer(frame.session_id)
    },
  })
  const decoder = new TextDecoder()
  for await (const chunk of body) parser.feed(decoder.decode(chunk as Buffer, { stream: true }))
}
