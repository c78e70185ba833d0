import { expect, it } from 'vitest'
import { createWriteProbe } from '../../src/sidecar/maintain.ts'
import { createWrites } from '../../src/sidecar/status.ts'
import { VirtualClock } from '../support/clock.ts'
import { openStore } from '../store/database.ts'

it('a replica that writes nothing finds out that the store accepts writes again', async () => {
  const clock = new VirtualClock()
  const writes = createWrites(clock)
  let isDown = true
  const { store } = await openStore({ onCommit: (seconds) => writes.observer.commit?.(seconds) })
  const probe = createWriteProbe({
    store: {
      log: {
        ...store.log,
        async commit(batch) {
          if (!isDown) return await store.log.commit(batch)
          writes.observer.storeRefused?.('unreachable')
          throw new Error('unreachable')
        },
      },
    },
    refused: () => writes.report().state === 'refusing',
    clock,
  })
  probe.start()
  writes.observer.storeRefused?.('unreachable')
  await clock.advance(60_000)
  expect(writes.report().state).toBe('refusing')
  isDown = false
  await clock.advance(60_000)
  await expect.poll(() => writes.report().state).toBe('accepting')
  probe.stop()
})
