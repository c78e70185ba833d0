import { expect, it } from 'vitest'
import { openBacklog } from './backlog.ts'

it('a page of deliveries reads few facts of a long backlog, and continues where the last one ended', async () => {
  const { store, factsRead } = await openBacklog(20_000)
  const read = await factsRead(40, async () => {
    const first = await store.read.deliveries({ limit: 20 })
    const after = first.rows.at(-1)?.id ?? ''
    const second = await store.read.deliveries({ limit: 20, status: 'pending', handler: 'app', after })
    const positions = [...first.rows, ...second.rows].map(({ id }) => Number(id.split('_')[1]))
    expect(positions).toEqual(Array.from({ length: 40 }, (_, index) => 20_000 - index))
    await store.close()
  })
  expect(read).toBeLessThan(1000)
})
