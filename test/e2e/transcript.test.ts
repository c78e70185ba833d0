import { describe, expect, test } from 'vitest'
import type { Event } from '../support/app.ts'
import { PROFILES } from './engines.ts'
import { Rig } from '../support/rig.ts'

describe.for(PROFILES)('turning the stream off and on (%s)', (details) => {
  test.for(['now', 'beginning'])(
    'starts a new transcript each time and repeats nothing (start_from: %s)',
    async (startFrom) => {
      await using rig = await Rig.open({
        details,
        channels: ['stream', 'poll'],
        config: { stream: { start_from: startFrom } },
      })
      const { client, app } = rig
      const session = await client.create()
      const words = ['one', 'two', 'three', 'four', 'five']
      for (const [index, word] of words.entries()) {
        if (index > 0) {
          await rig.stop()
          rig.config = {
            ...rig.config,
            stream: { ...rig.config.stream, enabled: !(rig.config.stream?.enabled ?? true) },
          }
          await rig.start()
        }
        await client.send(session, `say ${word}`)
        await rig.event('agent.message', (event) => textOf(event) === word)
        const turns = index + 1
        await expect
          .poll(() => app.delivered().filter(({ type }) => type === 'turn.settled').length)
          .toBe(turns)
      }
      const said = app.delivered().filter(({ type }) => type === 'agent.message')
      expect(said.map(textOf)).toEqual(words)
      const asked = app.delivered().filter(({ type }) => type === 'user.message')
      expect(asked.map(textOf)).toEqual(words.map((word) => `say ${word}`))
    },
  )
})

/** A frame's payload has the text; an item has it as its content. */
function textOf({ data: { payload = {} } }: Event): unknown {
  return payload['text'] ?? payload['content']
}
