import { describe, expect, test } from 'vitest'
import { PROFILES } from '../support/client.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

/** A startup probe gives up on a program that never says 200. */
async function startup(rig: Rig): Promise<number> {
  const answer = async () => (await rig.raw('GET', '/startupz')).status
  await until('200 of /startupz', async () => (await answer()) === 200, 3000).catch(() => undefined)
  return await answer()
}

describe.for(PROFILES)('a start (%s)', (details) => {
  test('/startupz answers 200 on a restart, whose first look was made by an earlier run', async () => {
    await using rig = await Rig.open({ details })
    await rig.stop()
    await rig.start()
    expect(await startup(rig)).toBe(200)
  })

  test('/startupz answers 200 with start_from beginning', async () => {
    await using rig = await Rig.open({ details, config: { stream: { start_from: 'beginning' } } })
    expect(await startup(rig)).toBe(200)
  })

  test('/startupz answers 200 when the service is known to be away', async () => {
    await using rig = await Rig.open({ details, start: false })
    rig.gateway.intercept = () => 'reset'
    await rig.start()
    expect(await startup(rig)).toBe(200)
  })
})
