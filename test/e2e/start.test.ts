import { expect, test } from 'vitest'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

test('/startupz answers 200 on a restart, whose first look was made by an earlier run', async () => {
  await using rig = await Rig.open({})
  await rig.stop()
  await rig.start()
  await until('200 of /startupz', async () => (await rig.raw('GET', '/startupz')).status === 200)
})

test('/startupz answers 200 with start_from beginning', async () => {
  await using rig = await Rig.open({ config: { stream: { start_from: 'beginning' } } })
  await until('200 of /startupz', async () => (await rig.raw('GET', '/startupz')).status === 200)
})

test('/startupz answers 200 when the service is known to be away', async () => {
  await using rig = await Rig.open({ start: false })
  rig.gateway.intercept = () => 'reset'
  await rig.start()
  expect((await rig.raw('GET', '/startupz')).status).toBe(200)
})
