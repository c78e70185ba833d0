import { describe, expect, test } from 'vitest'
import { PROFILES } from './engines.ts'
import { assertWhole } from '../support/oracle.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

/** So often a resource is given as it was. */
const STALE = 3

/**
 * Resources whose address fits `which` lag from now on: each is given a few times as it is now, then as it is. The stream
 * does not lag.
 */
async function lag(rig: Rig, which: RegExp): Promise<() => number> {
  const { client, gateway } = rig
  const seen = gateway.passed.filter(({ method, path }) => method === 'GET' && which.test(path))
  const stale = new Map<string, { body: string; left: number }>()
  for (const path of new Set(seen.map((entry) => entry.path))) {
    stale.set(path, { body: JSON.stringify(await client.call('GET', path)), left: STALE })
  }
  let given = 0
  gateway.intercept = ({ method, url }) => {
    const entry = method === 'GET' ? stale.get(url ?? '') : undefined
    if (entry === undefined || entry.left-- <= 0) return undefined
    given++
    return { status: 200, headers: { 'content-type': 'application/json' }, body: entry.body }
  }
  return () => given
}

describe.for(PROFILES)('resources that lag behind the stream, which is alone (%s)', (details) => {
  test('a turn that ended by its frame is reported as soon as its resource shows the end', async () => {
    await using rig = await Rig.open({ details, channels: ['stream'] })
    const session = await rig.client.start('say Hello', 'hang')
    await rig.event('turn.started')
    await rig.event('session.working')
    const given = await lag(rig, new RegExp(session))
    await rig.client.cancel(session)
    await rig.event('turn.ended')
    await rig.event('session.idle')
    expect(given()).toBeGreaterThan(0)
    await assertWhole(rig)
  })

  test('a session that still works when its turn ended is read again', async () => {
    await using rig = await Rig.open({ details, channels: ['stream'] })
    const session = await rig.client.start('hang')
    await rig.event('turn.started')
    await rig.event('session.working')
    const given = await lag(rig, new RegExp(`${session}$`))
    await rig.client.cancel(session)
    await rig.event('turn.ended')
    await rig.event('session.idle')
    expect(given()).toBeGreaterThan(0)
    await assertWhole(rig)
  })

  test('an action of a frame is reported and answered as soon as its session shows it', async () => {
    await using rig = await Rig.open({ details, channels: ['stream'], tools: { look: {} } })
    const session = await rig.client.withTools({ look: null })
    rig.app.run = () => ({ body: 'seen' })
    await rig.client.send(session, 'wait 300ms', 'call look {}', 'say done')
    await rig.event('turn.started')
    await rig.event('session.working')
    const given = await lag(rig, new RegExp(session))
    await rig.event('action.required')
    await rig.event('action.resolved')
    await rig.event('session.idle')
    expect(given()).toBeGreaterThan(0)
    await assertWhole(rig, { tools: ['look'] })
  })
})

test('an expectation that no read confirms causes a few reads, and then waits for the next sweep', async () => {
  await using rig = await Rig.open({ channels: ['stream'] })
  const session = await rig.client.start('say Hello')
  await rig.event('turn.settled')
  const { gateway, emulator } = rig
  const before = gateway.passed.length
  emulator.publish(session, 'turn.started', { turn_id: 'turn_of_another' })
  await until('a second look', () => gateway.passed.length >= before + 4)
  const looks = gateway.passed.slice(before).filter(({ path }) => path.endsWith(session))
  const [first, second] = looks
  expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThan(300)
})
