import { createParser } from 'eventsource-parser'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { request } from 'undici'
import { serve } from './serve.ts'

/** What a user would write by hand: each frame of the stream is posted on, 32 at once, and nothing is stored. */

const AT_ONCE = 32

const Follow = Type.Object({
  service: Type.String(),
  handler: Type.String(),
  cursor: Type.Optional(Type.String()),
})

serve({
  follow(argument) {
    follow(Value.Parse(Follow, argument)).catch((error: unknown) => {
      throw error
    })
  },
})

async function follow({ service, handler, cursor }: { service: string; handler: string; cursor?: string }) {
  const { body } = await request(`${service}/v1/events`, {
    headers: {
      accept: 'text/event-stream',
      authorization: 'Bearer svc_pat_bench',
      ...(cursor === undefined ? {} : { 'last-event-id': cursor }),
    },
    bodyTimeout: 0,
  })
  const events: string[] = []
  let underWay = 0
  let free: (() => void) | null = null

  const post = async (data: string): Promise<void> => {
    const reply = await request(handler, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: data,
    })
    await reply.body.dump()
    if (reply.statusCode !== 200) throw new Error(`the handler answered ${reply.statusCode}`)
    underWay--
    free?.()
  }

  const parser = createParser({ onEvent: ({ data }) => void events.push(data) })
  const decoder = new TextDecoder()
  for await (const chunk of body) {
    parser.feed(decoder.decode(chunk as Buffer, { stream: true }))
    for (const data of events.splice(0)) {
      while (underWay === AT_ONCE) {
        await new Promise<void>((resolve) => {
          free = resolve
        })
      }
      underWay++
      void post(data)
    }
  }
}
