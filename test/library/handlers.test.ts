import { expect, test } from 'vitest'
import { itemFactId, stateFactId, streamFactId } from '../../src/core/fact.ts'
import { isTransientId, transientId } from '../../src/core/transient.ts'
import type { CallbackEvent, HandlerContext } from '../../src/core/handler.ts'
import { createRouter } from '../../src/sidecar/library/handlers.ts'

const passing = () => ({ id: transientId(Date.now(), 0) })

test('a transient event is for functions that name its type in full, whatever the others name', async () => {
  const router = createRouter()
  const seen: string[] = []
  for (const type of ['*', 'agent.*', 'agent.text']) router.on(type, () => void seen.push(type))
  const hand = async (id: string) => {
    await router.handle({ id, type: 'agent.text' } as CallbackEvent, {} as HandlerContext)
    return seen.splice(0)
  }
  expect(await hand(passing().id)).toEqual(['agent.text'])
  expect(await hand(streamFactId('1', 's'))).toEqual(['*', 'agent.*', 'agent.text'])
})

test('no id of a fact is taken for that of a transient event', () => {
  for (let index = 0; index < 20_000; index++) {
    const ids = [
      stateFactId('turn.started', index),
      itemFactId('s', String(index)),
      streamFactId(`t_${index}`, 's'),
    ]
    expect(ids.filter(isTransientId)).toEqual([])
  }
  expect(isTransientId(passing().id)).toBe(true)
})
