import { expect } from 'vitest'
import { readAction, readSession } from '../../src/core/wire.ts'
import { openStore } from './database.ts'
import { it } from './engines.ts'
import { readingOf } from './reading.ts'

it('functions that not even the tool * can answer are found behind many that it answers', async () => {
  const { store } = await openStore()
  const bad = ['not.a.name', 'x'.repeat(65), 'ä']
  const names = [...Array.from({ length: 25 }, (_, index) => `f_${index}-A`), 'x'.repeat(64), ...bad]
  const opened = names.map((name, index) =>
    readAction({ type: 'function_call', call_id: `call_${index}`, name, created_at: 1_700_000_000 + index }),
  )
  const session = readSession({ id: 'ses_1', status: 'working', updated_at: 1_700_000_000 }, () => undefined)
  await store.log.commit({ readings: [readingOf('ses_1', { session, opened })] })
  const found = async (tools: readonly string[]) =>
    (await store.read.functionsBeside(tools, 20)).map(({ name }) => name)
  expect(await found(['*', 'f_1-A'])).toEqual(bad)
  expect(await found(['*', 'ä'])).toEqual(bad.slice(0, 2))
  expect(await found(['f_1-A'])).toHaveLength(20)
})
