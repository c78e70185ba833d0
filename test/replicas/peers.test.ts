import { expect, it } from 'vitest'
import type { ReplicaRecord, Shards } from '../../src/core/shards.ts'
import { channelOf, handlersOf, joinReports, minutesOf, type ReplicaReport } from '../../src/sidecar/peers.ts'

const CHANNEL = {
  state: 'live',
  since: 5,
  lastError: null,
  lastEventAt: null,
  lastSeq: null,
  lag: null,
} as const
const OWN: ReplicaReport = {
  channels: {
    stream: { ...CHANNEL, state: 'connecting' },
    webhook: { ...CHANNEL, lastEventAt: 10, lag: { seconds: 1, at: 10 } },
    poll: { ...CHANNEL, state: 'stopped' },
  },
  handlers: [{ name: 'app', state: 'up', since: 5, lastError: null }],
  minutes: [{ at: 60_000, facts: 1, delivered: 2, failed: 3, calls: 4 }],
}
const RECORD: ReplicaRecord = {
  id: 'a',
  name: 'host',
  version: '1',
  self: false,
  leads: false,
  shards: 3,
  epoch: 1,
  configuration: null,
  report: null,
  seenAgo: 0,
  startedAt: 0,
}

/** What one replica, which does not lead, knows of the others. */
async function seen(others: Partial<ReplicaRecord>[], streamConnected = true) {
  let described = ''
  const shards: Pick<Shards, 'describe' | 'replicas' | 'leads' | 'streamConnected'> = {
    leads: false,
    streamConnected,
    describe: (report) => (described = report()),
    replicas: async () => [{ ...RECORD, self: true }, ...others.map((other) => ({ ...RECORD, ...other }))],
  }
  const peers = await joinReports(shards as Shards, () => OWN)()
  return { peers, described }
}

it('the states of channels are those of the leader, and times are of the newest event at any replica', async () => {
  const leader: ReplicaReport = {
    ...OWN,
    channels: {
      stream: { ...CHANNEL, lastEventAt: 7, lastSeq: '9' },
      webhook: { ...CHANNEL, state: 'waiting', lastEventAt: 30, lag: { seconds: 2, at: 30 } },
      poll: { ...CHANNEL, lastError: 'once' },
    },
  }
  const { peers, described } = await seen([{ leads: true, report: JSON.stringify(leader) }])
  expect(JSON.parse(described)).toEqual(OWN)
  expect(channelOf('stream', peers)).toMatchObject({ state: 'live', lastEventAt: 7, lastSeq: '9' })
  expect(channelOf('webhook', peers)).toMatchObject({
    state: 'waiting',
    lastEventAt: 30,
    lag: { seconds: 2 },
  })
  expect(channelOf('poll', peers)).toMatchObject({ state: 'live', lastError: 'once' })
  expect(minutesOf(peers)).toEqual([{ at: 60_000, facts: 2, delivered: 4, failed: 6, calls: 8 }])
})

it('an older leader, which reports nothing, shows whether its stream is connected', async () => {
  for (const [connected, state] of [
    [true, 'live'],
    [false, 'waiting'],
  ] as const) {
    const { peers } = await seen([{ leads: true }], connected)
    expect(channelOf('stream', peers).state).toBe(state)
    expect(channelOf('poll', peers).state).toBe('live')
  }
})

it('without a leader, the stream and polling wait', async () => {
  for (const others of [[], [{ leads: true, seenAgo: 20_000 }]]) {
    const { peers } = await seen(others)
    expect(channelOf('stream', peers)).toMatchObject({ state: 'waiting', lastError: 'no replica leads' })
    expect(channelOf('poll', peers)).toMatchObject({ state: 'waiting', lastError: 'no replica leads' })
    expect(channelOf('webhook', peers).state).toBe('live')
  }
})

it('a handler is down if one replica cannot reach it, since the first one could not', async () => {
  const report = (state: string, since: number) =>
    JSON.stringify({ ...OWN, handlers: [{ name: 'app', state, since, lastError: `at ${since}` }] })
  const of = async (...reports: string[]) =>
    handlersOf((await seen(reports.map((text) => ({ report: text })))).peers)[0]
  expect(await of(report('up', 8), report('up', 3))).toMatchObject({ state: 'up', since: 8 })
  expect(await of(report('down', 9), report('down', 7))).toMatchObject({
    state: 'down',
    since: 7,
    lastError: 'at 7',
  })
  // A pause reaches this process through the store: a report of the other may be from before its end.
  expect(await of(report('paused', 9))).toMatchObject({ state: 'up', since: 5 })
})

it('a report of another version that has parts of another form is read as far as it is known', async () => {
  const report = JSON.stringify({
    ...OWN,
    channels: { ...OWN.channels, stream: { state: 'new', since: 1 } },
    handlers: [7, { name: 'app', state: 'down', since: 2 }],
    minutes: 'none',
  })
  const { peers } = await seen([{ leads: true, report }])
  expect(channelOf('stream', peers).state).toBe('live')
  expect(handlersOf(peers)[0]).toMatchObject({ state: 'down', since: 2 })
  expect(minutesOf(peers)).toEqual(OWN.minutes)
})
