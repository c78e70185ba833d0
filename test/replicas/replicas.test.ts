import { isDeepStrictEqual } from 'node:util'
import { describe, expect, test } from 'vitest'
import { request } from 'undici'
import { isObject } from '../../src/std/json.ts'
import { assertWhole } from '../support/oracle.ts'
import { freePort } from '../support/listen.ts'
import { until } from '../support/until.ts'
import { Deployment, type Replica } from './deployment.ts'
import { FULL } from '../support/full.ts'
import { EventReader } from '../admin/event-reader.ts'

/** Several sidecars on one PostgreSQL. */

const CALL = 'call lookup_order {"order_id":"1"}'
const TOOLS = { lookup_order: {} }

describe('two replicas', () => {
  test('share the sessions: each turn, action and call is delivered and answered once, in order', async () => {
    await using deployment = await Deployment.open(2, { tools: TOOLS })
    const { rig } = deployment
    const sessions = await Promise.all(
      Array.from({ length: 12 }, () => rig.client.start(CALL, 'say {{last}}', 'say Done')),
    )
    for (const session of sessions) await rig.client.reached(session, 'idle')
    await assertWhole(rig, { tools: ['lookup_order'] })
    expect(rig.app.runs.map(({ call }) => call.call_id).toSorted()).toEqual(
      [...new Set(rig.app.runs.map(({ call }) => call.call_id))].toSorted(),
    )
    expect(rig.app.runs.every(({ call }) => !call.uncertain)).toBe(true)
    const served = await Promise.all(
      deployment.replicas.map(async ({ program }) => {
        const text = await (await request(`${program.admin}/metrics`)).body.text()
        return {
          delivered: valueOf(
            text,
            'session_sidecar_callback_attempts_total{handler="app",outcome="delivered"}',
          ),
          webhooks: valueOf(text, 'session_sidecar_webhook_requests_total{outcome="accepted"}'),
          shards: valueOf(text, 'session_sidecar_shards_owned'),
        }
      }),
    )
    for (const { delivered, shards } of served) {
      expect(delivered).toBeGreaterThan(0)
      expect(shards).toBe(32)
    }
  })

  test('a reader at each of them gets the same frames, the transient ones too', async () => {
    await using deployment = await Deployment.open(2)
    const { rig, replicas } = deployment
    const readers = await Promise.all(
      replicas.map(({ program }) => EventReader.open(`${program.admin}/v1/events`)),
    )
    await using _closing = new AsyncDisposableStack()
    for (const reader of readers) _closing.use(reader)
    await until('open streams', () => readers.every(({ retry }) => retry !== null))
    const session = await rig.client.start('say Hello')
    await rig.client.reached(session, 'idle')
    const [one, other] = readers
    await until('the end of the turn', () =>
      readers.every(({ frames }) =>
        frames.some(({ event }) => event === 'session.idle' || event === 'turn.ended'),
      ),
    )
    expect(one?.frames.some(({ event, id }) => event === 'agent.text' && id === undefined)).toBe(true)
    await until('the same frames', () => isDeepStrictEqual(one?.frames, other?.frames))
  })

  test('an operator pauses, resumes, retries and replays on any of them', async () => {
    await using deployment = await Deployment.open(2)
    const { rig, replicas } = deployment
    const [one, other] = replicas
    if (one === undefined || other === undefined) throw new Error('there are two')
    await one.admin('POST', '/api/handlers/app/pause')
    await until('pause on the other', async () => {
      const { data } = (await other.admin('GET', '/api/handlers')) as { data: { state: string }[] }
      return data[0]?.state === 'paused'
    })
    const sessions = await Promise.all(Array.from({ length: 8 }, () => rig.client.start('say Hello')))
    for (const session of sessions) await rig.client.reached(session, 'idle')
    await until('stored turns', async () => {
      const { queues } = (await one.admin('GET', '/api/status')) as { queues: { deliveries_pending: number } }
      return queues.deliveries_pending >= 8 * 4
    })
    expect(rig.app.callbacks.length).toBe(0)
    await other.admin('POST', '/api/handlers/app/resume')
    await assertWhole(rig)
    rig.app.handle = () => ({ status: 500 })
    const failing = await rig.client.start('say Again')
    await rig.client.reached(failing, 'idle')
    const dead = async (): Promise<number> => {
      const { queues } = (await one.admin('GET', '/api/status')) as { queues: { deliveries_dead: number } }
      return queues.deliveries_dead
    }
    await until('dead letters', async () => (await dead()) > 0)
    rig.app.handle = () => ({})
    for (const replica of replicas)
      await until('retry', async () => {
        await replica.admin('POST', '/api/deliveries/retry', { handler: 'app' })
        return (await dead()) === 0
      })
    await rig.event('turn.completed', ({ session_id }) => session_id === failing)
    const before = rig.app.delivered().length
    const { count } = (await other.admin('POST', '/api/replay', { handler: 'app', from: 1 })) as {
      count: number
    }
    expect(count).toBeGreaterThan(8)
    await until('replayed deliveries', () => rig.app.delivered().length >= before + count)
  })
})

test('the service asks one replica to wait: none of three reads a session until that time is over', async () => {
  await using deployment = await Deployment.open(3, { process: true })
  const { rig } = deployment
  const isRead = (method: string | undefined, path: string | undefined): boolean =>
    method === 'GET' && path?.startsWith('/v1/sessions') === true
  const wait = 10
  let refusedAt: number | null = null
  rig.gateway.intercept = ({ method, url }) => {
    if (refusedAt !== null || !isRead(method, url)) return undefined
    refusedAt = performance.now()
    return {
      status: 429,
      headers: { 'content-type': 'application/json', 'retry-after': String(wait) },
      body: JSON.stringify({ error: { code: 'rate_limit_exceeded', message: 'wait', request_id: 'req_1' } }),
    }
  }
  const start = () => Promise.all(Array.from({ length: 9 }, () => rig.client.start('say Hello')))
  await start()
  const from = await until('a refused read', () => refusedAt)
  // Webhooks and frames of these reach each replica, and each wants to read its sessions.
  await start()
  await assertWhole(rig)
  const reads = rig.gateway.passed.filter(({ method, path }) => isRead(method, path))
  const after = reads.map(({ at }) => at - from).filter((at) => at > 0)
  // What was sent before the others knew it, and how exact the clock of the service is.
  const late = after.filter((at) => at > 2500 && at < wait * 1000 - 500)
  expect(late).toEqual([])
  expect(after.some((at) => at >= wait * 1000 - 500)).toBe(true)
})

test('a replica with another configuration is reported by each replica', async () => {
  await using deployment = await Deployment.open(2, { tools: TOOLS })
  const report = async ({ admin, program }: Replica) => {
    const status: unknown = await admin('GET', '/api/status')
    if (!isObject(status)) throw new Error('no status')
    const { data } = (await admin('GET', '/api/attention')) as { data: { id: string }[] }
    const replicas = status['replicas'] as { self: boolean; configuration: string }[]
    return {
      self: replicas.find(({ self }) => self)?.configuration,
      needs: data.filter(({ id }) => id === 'replicas').length,
      warnings: program.lines.filter(({ message }) => message.includes('another configuration')).length,
      metric: (await (await request(`${program.admin}/metrics`)).body.text()).match(
        /session_sidecar_configuration_info\{fingerprint="([^"]+)"\} 1/,
      )?.[1],
    }
  }
  const [first, second] = await Promise.all(deployment.replicas.map(report))
  expect(first).toEqual({ self: first?.metric, needs: 0, warnings: 0, metric: second?.metric })
  const { handlers = [] } = deployment.rig.config
  await deployment.add({ handlers: handlers.map((handler) => ({ ...handler, ordered: false })) })
  await deployment.shared()
  const reports = await until('three warnings', async () => {
    const all = await Promise.all(deployment.replicas.map(report))
    return all.every(({ warnings }) => warnings > 0) && all
  })
  expect(reports.map(({ needs }) => needs)).toEqual([1, 1, 1])
  expect(reports.map(({ self }) => self === first?.self)).toEqual([true, true, false])
  expect(reports.map(({ metric }) => metric)).toEqual(reports.map(({ self }) => self))
})

describe('what only one replica knows', () => {
  test(
    'each replica gives the same answers: states of handlers, channels and throughput',
    { timeout: 120_000 },
    async () => {
      await using deployment = await Deployment.open(2)
      const { rig } = deployment
      const { handlers = [] } = rig.config
      const nowhere = `http://127.0.0.1:${await freePort()}`
      const lonely = await deployment.add({ handlers: handlers.map((one) => ({ ...one, url: nowhere })) })
      await deployment.shared()
      const sessions = await Promise.all(Array.from({ length: 12 }, () => rig.client.start('say Hello')))
      for (const session of sessions) await rig.client.reached(session, 'idle')
      await until('deliveries of two replicas', () => rig.app.delivered().length > 0)

      /** What must be equal, of one replica. */
      const answer = async ({ admin }: Replica) => {
        const { data } = (await admin('GET', '/api/handlers')) as { data: { state: string; since: string }[] }
        const { channels, throughput, ...status } = (await admin('GET', '/api/status')) as {
          channels: Record<string, { state: string; last_event_at: string | null }>
          throughput: { facts: number; delivered: number; failed: number }[]
          queues: object
        }
        const needs = (await admin('GET', '/api/attention')) as { data: { id: string }[] }
        const sum = (field: 'facts' | 'delivered') =>
          throughput.reduce((total, minute) => total + minute[field], 0)
        return {
          handlers: data.map(({ state, since }) => ({ state, since })),
          // On a busy machine, one that was asked a moment later knows a later event.
          channels: Object.entries(channels).map(([name, { state, last_event_at: at }]) => [
            name,
            state,
            at !== null,
          ]),
          queues: status.queues,
          facts: sum('facts'),
          delivered: sum('delivered'),
          needs: needs.data.map(({ id }) => id),
        }
      }
      const answers = await until(
        'equal answers',
        async () => {
          const all = await Promise.all(deployment.replicas.map(answer))
          return (
            all.every((one) => isDeepStrictEqual(one, all[0])) && all[0]?.handlers[0]?.state === 'down' && all
          )
        },
        // A report is up to 5 s old.
        60_000,
      )
      const [first] = answers
      if (first === undefined) throw new Error('there are three')
      const { facts, delivered, needs, channels } = first
      expect(delivered).toBe(rig.app.delivered().length)
      expect(facts).toBeGreaterThanOrEqual(delivered)
      expect(needs).toContain('down app')
      expect(channels.map(([name, state]) => [name, state])).toEqual([
        ['stream', 'live'],
        ['webhook', 'live'],
        ['poll', 'live'],
      ])
      await deployment.remove(lonely, 'stop')
      await until(
        'handler up',
        async () => {
          const all = await Promise.all(deployment.replicas.map(answer))
          return all.every(({ handlers: [one] }) => one?.state === 'up')
        },
        20_000,
      )
    },
  )
})

describe('three replicas', () => {
  test.runIf(FULL)(
    'one replica is stopped and one is killed: nothing is lost, repeated or out of order',
    { timeout: 180_000 },
    async () => {
      await using deployment = await Deployment.open(3, { tools: TOOLS, process: true })
      const { rig } = deployment
      const started: string[] = []
      const load = async (count: number): Promise<void> => {
        for (let index = 0; index < count; index++)
          started.push(await rig.client.start(CALL, 'say {{last}}', 'say Done'))
      }
      await load(6)
      const leading = await deployment.leader()
      const stopping = deployment.remove(leading, 'stop')
      await load(6)
      await stopping
      await deployment.shared()
      await load(6)
      const [victim] = deployment.replicas.slice(-1)
      if (victim === undefined) throw new Error('two are left')
      await deployment.remove(victim, 'kill')
      await load(6)
      await until(
        'everything with the last',
        async () => (await deployment.seen()).some(({ self, shards }) => self && shards === 64),
        40_000,
      )
      for (const session of started) await rig.client.reached(session, 'idle')
      await assertWhole(rig, { tools: ['lookup_order'] })
      expect(new Set(rig.app.runs.map(({ call }) => call.session_id)).size).toBe(started.length)
    },
  )
})

function valueOf(text: string, name: string): number {
  const line = text.split('\n').find((one) => one.startsWith(`${name} `) || one.startsWith(`${name}{`))
  return Number(line?.slice(line.lastIndexOf(' ') + 1) ?? 0)
}
