import { expect, it, onTestFinished } from 'vitest'
import { createClient } from '../../src/client/index.ts'
import { OTHER_TOKEN, OtherService } from '../support/other-service.ts'
import { all, faultOf, quickClock, readUntil } from './support.ts'

it('another implementation of the service is used as far as its description allows', async () => {
  await using service = await OtherService.start()
  const client = createClient({ baseUrl: service.url, token: OTHER_TOKEN, clock: quickClock() })
  onTestFinished(() => client.close())
  const id = service.session()
  expect((await client.health()).usable).toBe(true)
  expect(await client.sessions.get(id)).toMatchObject({ colour: 'a field of tomorrow', source: null })
  await client.sessions.send(id, 'hello')
  expect(service.messages).toEqual([{ kind: 'text', body: 'hello' }])
  await client.sessions.steer(id, 'left').catch(() => undefined)

  await using stream = await client.events.stream({ after: '0' })
  const turn = service.begin(id)
  const call = service.ask(turn, 'lookup', { a: 1 })
  for (let count = 0; count < 20; count++) service.say(turn, `word ${count}`)
  const [action] = (await client.sessions.get(id)).required_actions
  expect(action).toMatchObject({ call_id: call, name: 'lookup', arguments: { a: 1 } })
  expect((await client.actions.answer(id, call, { output: 42 })).outcome).toBe('handed_over')
  expect(service.answers).toMatchObject([{ call_id: call, output: '42', once: expect.any(String) }])
  service.end(turn, 'halted')
  const events = await readUntil(stream[Symbol.asyncIterator](), ({ type }) => type === 'turn.ended')
  const seqs = events.flatMap(({ seq }) => (seq === null ? [] : [Number(seq)]))
  expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, index) => index + 1))
  expect(events.at(-1)).toMatchObject({ session_id: id, turn_id: turn })

  // There is no route of a single turn: it is found in the list.
  expect(await client.turns.wait(id, turn, { interval: 5 })).toMatchObject({
    status: 'halted',
    error: undefined,
  })
  expect(await faultOf(client.turns.get(id, 'turn_none'))).toMatchObject({ code: 'not_found' })
  expect((await all(client.artifacts.list(id))).map((artifact) => artifact.id)).toEqual(['art_1'])
  expect(await faultOf(client.turns.cancel(id, turn))).toMatchObject({ code: 'route_unknown' })
  const { id: hook } = await client.webhooks.create({ url: 'https://example.com/' })
  await client.webhooks.delete(hook)
  expect(service.refused.filter((refused) => !refused.includes('steer'))).toEqual([])
})
