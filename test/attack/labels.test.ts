import { expect, test } from 'vitest'
import { startMetering, stored } from '../admin/metering.ts'
import { actionRaw, callOf, frameFact, readingOf, sessionRaw, turnFact, turnRaw } from '../admin/seed.ts'

const FLOOD = 10_000
/** Names of the language, and ten thousand more. */
const names = (prefix: string): string[] => [
  '__proto__', 'constructor', 'toString', 'a"b\n} 1', '',
  ...Array.from({ length: FLOOD }, (_, index) => `${prefix}_${index}`),
] // prettier-ignore

test('ten thousand unknown names of every kind leave the metrics as long as before', async () => {
  const { metrics, store, scrape } = startMetering()
  try {
    const { observer } = metrics
    for (const type of names('event')) {
      observer.frame({ type, seq: null, at: 1 })
      observer.fact(stored(frameFact('1', 's', { type })), 1)
      observer.sighting({ channel: 'stream', type, lag: 1 })
    }
    for (const status of names('status')) {
      const turn = turnRaw('t', 's', { status, artifacts: status })
      for (const type of ['turn.ended', 'turn.settled', 'session.failed'] as const)
        observer.fact(
          stored(turnFact(type, turn, { body: JSON.stringify({ turn, session: { status } }) })),
          1,
        )
    }
    for (const tool of names('tool')) {
      const run = { outcome: 'output', seconds: 1, attempt: 1, status: null, error: null } as const
      observer.toolRun({ tool, callId: 'c', sessionId: 's', ...run })
      observer.call({ tool, callId: 'c', sessionId: 's', outcome: tool, seconds: 1, call: callOf('c', 's') })
    }
    for (const word of names('word')) {
      observer.requestRetried(word)
      observer.request({ operation: word, statusClass: word, seconds: 1 })
      observer.budget(word, 1)
      observer.streamReconnect(word)
    }
    const readings = names('status').map((status, index) =>
      readingOf(
        sessionRaw(`s-${index}`, {
          status: status || 'idle',
          required_actions: [actionRaw(`c-${index}`, { type: status || 'question' })],
        }),
      ),
    )
    await store.log.commit({ readings })
    const families = await scrape()
    const most = [...families]
      .map(([name, { samples }]) => [name, samples.length] as const)
      .sort((a, b) => b[1] - a[1])
    // A histogram has a line for each bucket of each of its hundred labels.
    expect(most[0]?.[1]).toBeLessThan(101 * 20)
    expect((await metrics.scrape()).body.length).toBeLessThan(1024 * 1024)
    expect(Object.keys({})).toEqual([])
  } finally {
    await store.close()
  }
})
