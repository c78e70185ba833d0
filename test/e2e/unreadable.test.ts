import { describe, expect, test } from 'vitest'
import { PROFILES } from './engines.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'
import { FULL } from '../support/full.ts'

const BROKEN = {
  status: 500,
  body: JSON.stringify({
    error: { code: 'internal_error', message: 'it cannot be read', request_id: 'req_1' },
  }),
}

describe.for(PROFILES)('a list that the service cannot read (%s)', (details) => {
  test('is shown by status and metrics while it lasts', async () => {
    await using rig = await Rig.open({ details, channels: ['poll'] })
    const poll = async () => await rig.channel('poll')
    await until('a read', async () => (await poll())['state'] === 'live')
    rig.gateway.intercept = ({ url }) => (url?.startsWith('/v1/sessions?') ? BROKEN : undefined)
    const failing = await until('a read that failed', async () => {
      const status = await poll()
      return status['state'] === 'waiting' ? status : undefined
    })
    expect(failing['last_error']).toContain('it cannot be read')
    const { body } = await rig.raw('GET', '/metrics')
    const [, oldest] =
      /^session_sidecar_read_oldest_pending_timestamp_seconds (\S+)$/m.exec(String(body['text'])) ?? []
    expect(Number(oldest) * 1000).toBeLessThan(Date.now())
    rig.gateway.intercept = () => undefined
    await until('a read', async () => (await poll())['state'] === 'live')
  })
})

describe.for(PROFILES)('one session whose reads time out (%s)', (details) => {
  test.for(FULL ? ['a proxy gives up', 'no answer comes'] : ['a proxy gives up'])(
    'does not block the others: %s',
    async (fault) => {
      await using rig = await Rig.open({ details, channels: ['poll'], start: false })
      const broken = await rig.client.start('say Broken')
      const early = await rig.client.start('say Early')
      let hung = 0
      rig.gateway.intercept = ({ url }) => {
        if (url?.includes(`/${broken}/turns`) !== true) return undefined
        hung++
        return fault === 'no answer comes' ? 'reset' : { status: 504, body: '<html>timeout</html>' }
      }
      await rig.start()
      await until(
        'end of the first look',
        () => rig.program?.lines.some(({ message }) => message.endsWith('its entry in the list is used')),
        60_000,
      )
      const other = await rig.client.start('say Hello')
      await rig.event('turn.settled', ({ session_id }) => session_id === other)
      expect(hung).toBeGreaterThan(3)
      rig.gateway.intercept = () => undefined
      await rig.event('turn.settled', ({ session_id }) => session_id === broken)
      expect(early).not.toBe(broken)
    },
  )

  test('does not take the places of the others, with a dozen of its kind', async () => {
    await using rig = await Rig.open({ details, tools: { lookup_order: {} } })
    const hanging: string[] = []
    const over = Promise.withResolvers<undefined>()
    for (let index = 0; index < 12; index++) hanging.push(await rig.client.create())
    rig.gateway.intercept = ({ url }) =>
      hanging.some((id) => url?.includes(id) === true) ? over.promise : undefined
    for (const id of hanging) await rig.client.send(id, 'say Hello')
    const reads = (): number =>
      rig.gateway.passed.filter(({ method, path }) => method === 'GET' && path.includes('/v1/sessions/'))
        .length
    await until('reads that hang', () => reads() >= 8)
    const begun = performance.now()
    const healthy = await rig.client.start('call lookup_order {"order_id":"1"}', 'say {{last}}')
    await rig.event('call.answered', ({ session_id }) => session_id === healthy)
    expect(performance.now() - begun).toBeLessThan(15_000)
    over.resolve(undefined)
  })
})

describe.for(PROFILES)('one session that the service cannot read (%s)', (details) => {
  test('does not block the first read, and is reported once it can be read', async () => {
    await using rig = await Rig.open({ details, channels: ['poll'], start: false, tools: { later: {} } })
    const broken = await rig.client.start('call later {"n":1}', 'say Repaired')
    const [call] = await rig.client.required(broken)
    rig.gateway.intercept = ({ url }) => (url?.includes(`/${broken}/turns`) ? BROKEN : undefined)
    await rig.start()
    await until('end of the first look', () =>
      rig.program?.lines.some(({ message }) => message.endsWith('its entry in the list is used')),
    )
    const other = await rig.client.start('say Hello')
    await rig.event('turn.settled', ({ session_id }) => session_id === other)
    expect(rig.app.delivered().filter(({ data }) => data.turn?.['session_id'] === broken)).toEqual([])

    rig.gateway.intercept = () => undefined
    const { data } = await rig.event('call.answered', ({ session_id }) => session_id === broken)
    expect(data.call?.call_id).toBe(call?.call_id)
    await rig.event('turn.settled', ({ session_id }) => session_id === broken)
  })

  test('reports the ends of its turns, though its artifacts cannot be read', async () => {
    await using rig = await Rig.open({ details, channels: ['poll'] })
    const { artifacts } = rig.client.details.paths
    const broken = await rig.client.create()
    rig.gateway.intercept = ({ url }) =>
      url?.startsWith(artifacts.replace('{session_id}', broken)) ? BROKEN : undefined
    await rig.client.send(broken, 'write outputs/report.txt done')
    const { data } = await rig.event('turn.settled', ({ session_id }) => session_id === broken)
    expect([data.turn?.artifacts, data.artifacts]).toEqual(['ready', null])
  })

  test.runIf(FULL)(
    'reports its ends, though its items cannot be read, and reports the items once they can',
    async () => {
      await using rig = await Rig.open({ details, channels: ['poll'] })
      const broken = await rig.client.create()
      rig.gateway.intercept = ({ url }) => (url?.includes(`/${broken}/items`) ? BROKEN : undefined)
      await rig.client.send(broken, 'say Hello')
      await rig.event('turn.settled', ({ session_id }) => session_id === broken)
      expect(rig.app.delivered().filter(({ type }) => type === 'agent.message')).toEqual([])

      rig.gateway.intercept = () => undefined
      await rig.client.send(broken, 'say Hello again')
      await until(
        'both messages',
        () => rig.app.delivered().filter(({ type }) => type === 'agent.message').length === 2,
      )
    },
  )
})
