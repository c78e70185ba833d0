import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { startMetering, stored, type Metering } from './metering.ts'
import { actionRaw, callOf, frameFact, readingOf, sessionRaw, turnFact, turnRaw } from './seed.ts'

let metering: Metering

beforeEach(() => {
  metering = startMetering()
})
afterEach(() => metering.store.close())

/** Name, type and labels of each metric. Users build alerts on them: none is renamed or removed. */
const CONTRACT = `
build_info gauge version | configuration_info gauge fingerprint | api_requests_total counter operation,status_class | api_request_duration_seconds histogram operation
api_retries_total counter code | api_rate_limit_remaining gauge bucket | stream_connected gauge
stream_reconnects_total counter reason | stream_last_event_timestamp_seconds gauge | stream_events_total counter type
stream_seq gauge | webhooks_received_total counter outcome | webhook_subscription_active gauge | facts_total counter type
fact_first_seen_total counter channel | fact_missed_total counter channel | fact_lag_seconds histogram channel
callback_attempts_total counter handler,outcome | callback_duration_seconds histogram handler
callback_queue_depth gauge handler | callback_oldest_pending_timestamp_seconds gauge handler
callback_dead_letters_total counter handler | handler_up gauge handler | tool_calls_total counter tool,outcome
callback_transients_dropped_total counter handler | calls_without_tool_total counter
tool_call_duration_seconds histogram tool | tool_answer_duration_seconds histogram tool | required_actions gauge type
required_action_oldest_timestamp_seconds gauge type | sessions gauge status | session_outcomes_total counter status
turns_total counter outcome | turn_duration_seconds histogram outcome | turn_artifacts_total counter state
session_slots_used gauge | session_slots_limit gauge | token_expiry_timestamp_seconds gauge | leader gauge
shards_owned gauge | lease_renewals_total counter outcome
store_commit_duration_seconds histogram | fenced_writes_total counter | store_writes_refused_total counter reason | store_bytes gauge | relay_readers gauge
relay_frames_sent_total counter source | relay_readers_ended_total counter outcome
artifact_oldest_pending_timestamp_seconds gauge | service_clock_offset_seconds gauge
read_queue_depth gauge | read_oldest_pending_timestamp_seconds gauge | token_accepted gauge
stream_frames_quarantined_total counter | store_accepts_writes gauge | store_readable gauge
sessions_foreign gauge | stream_frames_held gauge | stream_frames_unattributed_total counter
callback_dead_letters_kept gauge handler | tool_runs_total counter tool,outcome`

async function everythingHappens(): Promise<void> {
  const { observer } = metering.metrics
  const turn = turnRaw('turn_1', 's-a')
  const fact = stored(turnFact('turn.completed', turn))
  await metering.store.settings.registerHandlers([{ name: 'app', ordered: true, events: ['*'] }])
  const session = sessionRaw('s-a', { status: 'requires_action', required_actions: [actionRaw('call_1')] })
  await metering.store.log.commit({
    readings: [readingOf(session, { facts: [fact], turns: [turn], settled: false })],
    hints: [{ sessionId: 's-a', channel: 'stream', at: 1, scope: 'turns', delay: 0 }],
  })
  observer.shards(64, true)
  observer.leaseRenewed('renewed')
  observer.request({ operation: 'readTurn', statusClass: '2xx', seconds: 0.02 })
  observer.requestRetried('rate_limit_exceeded')
  observer.budget('reads', 41)
  observer.channel('stream', { state: 'live', since: 1, lastError: null, lastEventAt: null, lastSeq: '41' })
  observer.streamReconnect('silence')
  observer.frame({ type: 'agent.message', seq: '42', at: 1_700_000_000_500 })
  observer.webhook('accepted')
  observer.subscription(true)
  observer.fact(fact, 0.3)
  observer.sighting({ channel: 'stream', type: 'turn.completed', lag: 1 })
  observer.missed({ channel: 'webhook', type: 'turn.completed' })
  observer.callback({
    handler: 'app',
    fact,
    outcome: 'delivered',
    attempt: { at: 1, status: 200, ms: 12 },
    number: 1,
    wait: null,
  })
  observer.handler('app', 'up')
  observer.toolRun({
    tool: 'lookup_order',
    callId: 'call_1',
    sessionId: 's-a',
    outcome: 'output',
    seconds: 0.2,
    attempt: 1,
    status: null,
    error: null,
  })
  observer.call({
    tool: 'lookup_order',
    callId: 'call_1',
    sessionId: 's-a',
    outcome: 'answered',
    seconds: 0.4,
    call: callOf('call_1', 's-a'),
  })
}

it('has every metric of the contract, with its type and labels', async () => {
  await metering.store.close()
  metering = startMetering({
    slotsLimit: () => 25,
    clockOffset: () => 1500,
    tokenExpiresAt: () => 1_800_000_000_000,
    tokenAccepted: () => true,
  })
  await everythingHappens()
  const families = await metering.scrape()
  const expected = CONTRACT.split(/\||\n/)
    .map((entry) => entry.trim().split(' '))
    .filter(([name]) => name !== '')
  for (const [name = '', type = '', labels = ''] of expected) {
    const family = families.get(`session_sidecar_${name}`)
    expect([name, family?.type]).toEqual([name, type])
    const found = Object.keys(family?.samples[0]?.labels ?? {}).filter((label) => label !== 'le')
    expect([name, family?.samples.length]).not.toEqual([name, 0])
    expect([name, found]).toEqual([name, labels === '' ? [] : labels.split(',')])
  }
  const ours = [...families.keys()].filter((name) => name.startsWith('session_sidecar_'))
  expect(ours.sort()).toEqual(expected.map(([name]) => `session_sidecar_${name}`).sort())
  expect(
    [...families].filter(([name, { type }]) => name.endsWith('_total') !== (type === 'counter')),
  ).toEqual([])
  expect([...families.keys()]).toEqual(
    expect.arrayContaining(['process_resident_memory_bytes', 'nodejs_eventloop_lag_seconds']),
  )
})

it('names no session, turn or call', async () => {
  await everythingHappens()
  const { body } = await metering.metrics.scrape()
  for (const id of ['s-a', 'turn_1', 'call_1', 'evt_']) expect(body).not.toContain(id)
})

it('counts what the parts of the sidecar report', async () => {
  await everythingHappens()
  const { observer } = metering.metrics
  observer.relayReaders(2)
  observer.storeRefused('full')
  observer.relayFrames('live', 1200)
  observer.relayFrames('live', 3)
  observer.relayEnded('slow')
  expect(await metering.valueOf('relay_readers')).toBe(2)
  expect(await metering.valueOf('relay_frames_sent_total', { source: 'live' })).toBe(1203)
  expect(await metering.valueOf('relay_readers_ended_total', { outcome: 'slow' })).toBe(1)
  expect(await metering.valueOf('api_requests_total', { operation: 'readTurn', status_class: '2xx' })).toBe(1)
  expect(await metering.valueOf('api_rate_limit_remaining', { bucket: 'reads' })).toBe(41)
  expect(await metering.valueOf('stream_connected')).toBe(1)
  expect(await metering.valueOf('stream_seq')).toBe(42)
  expect(await metering.valueOf('stream_last_event_timestamp_seconds')).toBe(1_700_000_000.5)
  expect(await metering.valueOf('facts_total', { type: 'turn.completed' })).toBe(1)
  expect(await metering.valueOf('fact_first_seen_total', { channel: 'webhook' })).toBe(1)
  expect(await metering.valueOf('fact_missed_total', { channel: 'webhook' })).toBe(1)
  expect(await metering.valueOf('fact_lag_seconds_sum', { channel: 'webhook' })).toBe(0.3)
  expect(await metering.valueOf('callback_attempts_total', { handler: 'app', outcome: 'delivered' })).toBe(1)
  expect(await metering.valueOf('callback_duration_seconds_sum', { handler: 'app' })).toBe(0.012)
  expect(await metering.valueOf('tool_answer_duration_seconds_count', { tool: 'lookup_order' })).toBe(1)
  expect(await metering.valueOf('build_info', { version: '1.2.3+build' })).toBe(1)
  expect(await metering.valueOf('store_commit_duration_seconds_count')).toBeGreaterThan(0)
  // A second scrape must not count anything twice.
  expect(await metering.valueOf('facts_total', { type: 'turn.completed' })).toBe(1)
})

it('has a series for every outcome of a tool before the first call', async () => {
  for (const outcome of ['answered', 'expired', 'refused', 'unknown'])
    expect(await metering.valueOf('tool_calls_total', { tool: 'lookup_order', outcome })).toBe(0)
  for (const outcome of ['output', 'deferred', 'rejected', 'failed'])
    expect(await metering.valueOf('tool_runs_total', { tool: 'lookup_order', outcome })).toBe(0)
})

it('counts dead letters, and times only answers that the service accepted', async () => {
  const fact = stored(frameFact('1', 's'))
  const attempt = { at: 1, error: 'refused', ms: 3 }
  const closed = { tool: 'lookup_order', callId: 'c', sessionId: 's', call: callOf('c', 's') }
  const dead = { outcome: 'dead', attempt, number: 16, wait: null } as const
  metering.metrics.observer.callback({ handler: 'app', fact, ...dead })
  metering.metrics.observer.call({ ...closed, outcome: 'expired', seconds: 9 })
  metering.metrics.observer.call({ ...closed, outcome: 'answered', seconds: null })
  expect(await metering.valueOf('callback_dead_letters_total', { handler: 'app' })).toBe(1)
  expect(await metering.valueOf('tool_calls_total', { tool: 'lookup_order', outcome: 'expired' })).toBe(1)
  expect(
    await metering.valueOf('tool_answer_duration_seconds_count', { tool: 'lookup_order' }),
  ).toBeUndefined()
})

it('bounds the values of labels, whatever comes from outside', async () => {
  for (let i = 0; i < 500; i++) metering.metrics.observer.frame({ type: `made.up.${i}`, seq: null, at: 1 })
  for (const type of ['__proto__', 'constructor', 'a"b\n} 1', '', 'x'.repeat(65), 'ünï']) {
    metering.metrics.observer.frame({ type, seq: null, at: 1 })
    metering.metrics.observer.requestRetried(type)
  }
  for (let i = 0; i < 500; i++)
    metering.metrics.observer.fact(stored(frameFact(String(i), 's', { type: `made.up.${i}` })), null)
  metering.metrics.observer.fact(stored(turnFact('call.failed', turnRaw('t', 's'))), null)
  const families = await metering.scrape()
  const events = families.get('session_sidecar_stream_events_total')?.samples ?? []
  expect(events).toHaveLength(101)
  expect(events.find(({ labels }) => labels['type'] === 'other')?.value).toBe(406)
  expect(
    families.get('session_sidecar_api_retries_total')?.samples.map(({ labels }) => labels['code']),
  ).toEqual(['__proto__', 'constructor', 'other'])
  expect(await metering.valueOf('facts_total', { type: 'call.failed' })).toBe(1)
})

it('leaves out impossible durations', async () => {
  for (const seconds of [NaN, Infinity, -1]) {
    metering.metrics.observer.request({ operation: 'health', statusClass: '2xx', seconds })
    metering.metrics.observer.commit(seconds)
  }
  expect(await metering.valueOf('api_requests_total', { operation: 'health' })).toBe(3)
  expect(
    await metering.valueOf('api_request_duration_seconds_count', { operation: 'health' }),
  ).toBeUndefined()
})

it('counts each sidecar of a process separately', async () => {
  const other = metering.make()
  metering.metrics.observer.webhook('forged')
  expect(await metering.valueOf('webhooks_received_total', { outcome: 'forged' })).toBe(1)
  expect(await metering.valueOf('webhooks_received_total', { outcome: 'forged' }, other)).toBe(0)
})

it('does not keep a process alive', async () => {
  const source = `
    import { createMetrics } from ${JSON.stringify(new URL('../../src/sidecar/admin/metrics.ts', import.meta.url).href)}
    const log = { warn() {} }
    for (let i = 0; i < 3; i++) {
      const metrics = createMetrics({ build: { version: '1', configuration: '0f' }, store: () => { throw new Error('none') }, clock: { steady: () => 0 }, log, handlers: [], tools: [] })
      console.log((await metrics.scrape()).body.length > 1000)
    }`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', source], {
    timeout: 15_000,
  })
  expect(stdout).toBe('true\ntrue\ntrue\n')
})

// For as long as the database was unreachable, one replica had `leader 1` and each its shards: no alert fired.
it('a replica that cannot renew its leases shows that it owns nothing', async () => {
  const { observer } = metering.metrics
  const shown = () => Promise.all([metering.valueOf('leader'), metering.valueOf('shards_owned')])
  observer.shards(32, true)
  metering.advance(60_000)
  expect(await shown()).toEqual([1, 32])
  observer.leaseRenewed('renewed')
  observer.leaseRenewed('failed')
  metering.advance(14_000)
  expect(await shown()).toEqual([1, 32])
  metering.advance(2000)
  observer.leaseRenewed('failed')
  expect(await shown()).toEqual([0, 0])
  observer.leaseRenewed('renewed')
  expect(await shown()).toEqual([1, 32])
})
