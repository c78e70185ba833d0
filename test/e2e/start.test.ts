import { describe, expect, test } from 'vitest'
import { SECRET } from '../support/app.ts'
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

  test('says whom nobody delivers to any more, and delivers once somebody has the name again', async () => {
    await using rig = await Rig.open({
      details,
      channels: ['poll'],
      handlers: (app) => ['old', 'kept'].map((name) => ({ name, url: app.handlerUrl(name), secret: SECRET })),
    })
    rig.app.handle = ({ name }) => (name === 'old' ? { status: 503 } : {})
    const session = await rig.client.start('say Hello')
    await rig.event('turn.settled', () => true, 'kept')
    const { handlers = [] } = rig.config
    await rig.stop()
    rig.config = { ...rig.config, handlers: handlers.filter(({ name }) => name !== 'old') }
    await rig.start()
    const owed = await rig.list('/api/deliveries?status=pending&handler=old')
    expect(owed).not.toHaveLength(0)
    expect(warnings(rig)).toEqual([{ handler: 'old', pending: owed.length }])

    await rig.stop()
    rig.app.handle = () => ({})
    rig.config = { ...rig.config, handlers }
    await rig.start()
    await rig.event('turn.settled', ({ session_id }) => session_id === session, 'old')
    expect(warnings(rig)).toEqual([])
  })

  test('says that the store is from another service', async () => {
    await using rig = await Rig.open({ details, channels: ['poll'] })
    await rig.stop()
    await rig.start()
    expect(warnings(rig)).toEqual([])
    await rig.stop()
    await using other = await Rig.open({ details, start: false })
    const before = rig.config.service
    rig.config = { ...rig.config, service: other.config.service }
    await rig.start()
    expect(warnings(rig)).toEqual([{ before: before.base_url, now: other.config.service.base_url }])
  })
})

/** What the start said of the store. */
function warnings({ program }: Rig): unknown[] {
  const lines = program?.lines.filter(
    ({ level, message }) => level === 'warn' && message.startsWith('store:'),
  )
  return (lines ?? []).map(({ details }) => details)
}
