import { expect, it } from 'vitest'
import { PROFILES } from '../emulator/support.ts'
import { emulator, idsIn, PINGS, run } from './support.ts'

// A ping takes 15 seconds, and the clock of a deployment cannot be advanced. In its own file the
// test delays no other.

it('pings its streams in time, whatever its open details', async () => {
  const reports = await Promise.all(
    PROFILES.map(async (openDetails) => {
      const service = await emulator({ openDetails })
      return run({ baseUrl: service.baseUrl, token: service.token, only: new Set(PINGS) })
    }),
  )
  for (const report of reports) expect(idsIn(report, 'holds')).toEqual([...PINGS])
})

it('reports a stream without pings', async () => {
  const service = await emulator({ limits: { pingMs: 3_600_000 } })
  const report = await run({ baseUrl: service.baseUrl, token: service.token, only: new Set(PINGS) })
  expect(idsIn(report, 'differs')).toEqual([...PINGS])
})
