import { expect, it } from 'vitest'
import { PROFILES } from '../emulator/support.ts'
import { emulator, idsIn, PINGS, run } from './support.ts'

// A ping is 15 seconds away, and a deployment has no clock that could be hurried: in a file of its own it delays no other.

it('pings its streams in time, whatever its open details', { timeout: 30_000 }, async () => {
  const reports = await Promise.all(
    PROFILES.map(async (openDetails) => {
      const service = await emulator({ openDetails })
      return run({ baseUrl: service.baseUrl, token: service.token, only: new Set(PINGS) })
    }),
  )
  for (const report of reports) expect(idsIn(report, 'holds')).toEqual([...PINGS])
})

it('tells of a stream that is not pinged', { timeout: 30_000 }, async () => {
  const service = await emulator({ limits: { pingMs: 3_600_000 } })
  const report = await run({ baseUrl: service.baseUrl, token: service.token, only: new Set(PINGS) })
  expect(idsIn(report, 'differs')).toEqual([...PINGS])
})
