import { describe, expect, test } from 'vitest'
import { PROFILES } from './engines.ts'
import { assertWhole } from '../support/oracle.ts'
import { ALL_CHANNELS, Rig, type ChannelName } from '../support/rig.ts'
import { until } from '../support/until.ts'

const EACH: readonly { name: string; channels: readonly ChannelName[] }[] = [
  { name: 'stream alone', channels: ['stream'] },
  { name: 'webhooks alone', channels: ['webhook'] },
  { name: 'polling alone', channels: ['poll'] },
  { name: 'all three', channels: ALL_CHANNELS },
]

describe.for(PROFILES)('turns and sessions (%s)', (details) => {
  // [fault state-4]
  test.for(EACH)(
    'a cancelled turn is turn.ended, whatever its status is called ($name)',
    async ({ channels }) => {
      await using rig = await Rig.open({ details, channels })
      const session = await rig.client.start('say Hello', 'hang')
      await rig.event('turn.started')
      await rig.client.cancel(session)
      const ended = await rig.event('turn.ended')
      expect(ended.data.turn?.status).toBe(details === 'a' ? 'cancelled' : 'interrupted')
      await assertWhole(rig, { transcript: channels.includes('stream') })
      expect(rig.app.delivered().map(({ type }) => type)).not.toContain('turn.completed')
    },
  )

  // [fault state-5]
  test('a deleted session is reported once, after its actions were resolved', async () => {
    await using rig = await Rig.open({ details })
    const session = await rig.client.start('ask Which colour?')
    await rig.event('action.required')
    await rig.client.remove(session)
    await rig.event('session.deleted')
    await rig.event('action.resolved')
    await assertWhole(rig)
    expect(rig.app.delivered().at(-1)?.type).toBe('session.deleted')
  })

  test('a deleted idle session is reported by the next sweep', async () => {
    await using rig = await Rig.open({ details, channels: ['poll'] })
    const session = await rig.client.start('say Hello')
    await rig.event('turn.settled')
    await rig.client.remove(session)
    const deleted = await rig.event('session.deleted')
    expect(deleted.session_id).toBe(session)
  })

  // [fault state-6]
  test.for(EACH)(
    'a run that cannot start is session.failed with the item that says why ($name)',
    async ({ channels }) => {
      await using rig = await Rig.open({ details, channels })
      const session = await rig.client.start('cannot start the workspace is lost')
      const failed = await rig.event('session.failed')
      expect(JSON.stringify(failed.data.item)).toContain('the workspace is lost')
      expect(failed.session_id).toBe(session)
      await assertWhole(rig, { transcript: channels.includes('stream') })
      expect(rig.app.delivered().some(({ type }) => type.startsWith('turn.'))).toBe(false)
      // The next run starts, fails in its turn, and names no item.
      await rig.client.send(session, 'say better')
      await rig.event('session.idle')
    },
  )

  test('a run that cannot start, twice in a row, is reported with its reason each time', async () => {
    await using rig = await Rig.open({ details })
    const session = await rig.client.start('cannot start first reason')
    await rig.event('session.failed', ({ data }) => JSON.stringify(data.item ?? '').includes('first reason'))
    await rig.client.send(session, 'wait 200ms')
    await rig.event('turn.settled')
    await rig.client.send(session, 'cannot start second reason')
    await rig.event('session.failed', ({ data }) => JSON.stringify(data.item ?? '').includes('second reason'))
    expect(rig.emulator.ledger().turns).toHaveLength(1)
    await assertWhole(rig)
  })

  test.for(EACH)(
    'partial artifacts: turn.settled lists the skipped and the published files ($name)',
    async ({ channels }) => {
      await using rig = await Rig.open({ details, channels })
      await rig.client.start('write outputs/small.txt x', 'write outputs/large.bin 60MiB')
      const settled = await rig.event('turn.settled')
      expect(settled.data.turn?.artifacts).toBe('partial')
      expect(settled.data.artifacts_skipped).toMatchObject([{ path: 'outputs/large.bin' }])
      expect(settled.data.artifacts).toMatchObject([
        { [details === 'a' ? 'path' : 'filename']: 'outputs/small.txt' },
      ])
      await assertWhole(rig, { transcript: channels.includes('stream') })
    },
  )

  test('turn.settled of a later turn names that turn’s artifacts alone', async () => {
    await using rig = await Rig.open({ details })
    const session = await rig.client.start('write outputs/one.txt x')
    await rig.event('turn.settled')
    await rig.client.send(session, 'write outputs/two.txt x')
    const second = await until(
      'second settled turn',
      () => rig.app.delivered().filter(({ type }) => type === 'turn.settled')[1],
    )
    expect(second.data.artifacts?.map((artifact) => artifact['path'] ?? artifact['filename'])).toEqual([
      'outputs/two.txt',
    ])
  })

  test('failed artifacts settle the turn as well', async () => {
    await using rig = await Rig.open({ details })
    rig.emulator.faults.set({ fail_artifacts: 1 })
    await rig.client.start('write outputs/small.txt x')
    const settled = await rig.event('turn.settled')
    expect(settled.data.turn?.artifacts).toBe('failed')
    await assertWhole(rig)
  })

  // [fault state-1]
  test.for(EACH)(
    'artifacts that settle long after the turn’s end: turn.completed now, turn.settled then ($name)',
    async ({ channels }) => {
      await using rig = await Rig.open({ details, channels })
      await rig.client.start('collect 1500ms', 'write outputs/small.txt x')
      await until('completed turn', () => rig.emulator.ledger().turns[0]?.artifacts === 'pending')
      const completed = await rig.event('turn.completed')
      expect(completed.data.turn?.artifacts).toBe('pending')
      expect(rig.app.delivered().map(({ type }) => type)).not.toContain('turn.settled')
      await assertWhole(rig, { transcript: channels.includes('stream') })
    },
  )

  test('turn.completed and turn.settled come after the whole transcript of the turn, under load', async () => {
    await using rig = await Rig.open({ details, handler: { concurrency: 4 } })
    for (let count = 0; count < 8; count++)
      await rig.client.start('burst 200 200', 'write outputs/x.txt x', 'say last words')
    await assertWhole(rig)
    const events = rig.app.delivered()
    for (const turn of rig.emulator.ledger().turns) {
      const mine = events.filter(({ session_id }) => session_id === turn.session_id)
      const frame = mine.findIndex(({ type }) => type === 'stream.turn.ended')
      const end = mine.findIndex(({ type }) => type === 'turn.completed')
      expect(frame).toBeGreaterThan(-1)
      expect(end).toBeGreaterThan(frame)
    }
  })

  test('without its frame turn.completed waits two seconds at most', async () => {
    await using rig = await Rig.open({ details, channels: ['stream', 'poll'] })
    await rig.client.start('say warm up')
    await rig.event('turn.settled')
    rig.emulator.faults.set({ stall_streams: true })
    const session = await rig.client.start('say Hello')
    await rig.client.reached(session, 'idle')
    const over = performance.now()
    await rig.event('turn.completed', ({ session_id }) => session_id === session)
    const waited = performance.now() - over
    expect(waited).toBeGreaterThan(1500)
    expect(waited).toBeLessThan(4000)
  })

  test('turns that were read after their session report no end before the resolved actions', async () => {
    await using rig = await Rig.open({ details, channels: ['stream'] })
    const { client, emulator, gateway } = rig
    const session = await client.start('call not_configured {}', 'say done')
    const { data } = await rig.event('action.required')
    await rig.event('session.requires_action')
    // The next reading has its session, and while it asks for the turns everything ends.
    let held = false
    gateway.intercept = async ({ url }) => {
      if (held || url?.includes(`/${session}/turns`) !== true) return undefined
      held = true
      await client.answer(session, data.action?.call_id ?? '', 'answered meanwhile')
      await client.reached(session, 'idle')
      return undefined
    }
    emulator.publish(session, 'agent.error', { message: 'makes the sidecar look' })
    await rig.event('turn.settled')
    await rig.event('action.resolved')
    expect(held).toBe(true)
    await assertWhole(rig)
  })

  test('an action of a turn that was not reported yet is reported after it', async () => {
    await using rig = await Rig.open({ details, channels: ['stream', 'webhook'] })
    const { client, emulator, gateway, app } = rig
    await client.start('say warm up')
    await rig.event('turn.settled')
    // The stream is open and late; the first look at the session comes just before its turn begins.
    emulator.faults.set({ stall_streams: true })
    let early = true
    gateway.intercept = ({ url }) => {
      if (!early || url?.includes('/turns') !== true) return undefined
      early = false
      const body = JSON.stringify({ object: 'list', data: [], has_more: false, last_id: '' })
      return { status: 200, headers: { 'content-type': 'application/json' }, body }
    }
    const session = await client.start('wait 300ms', 'call not_configured {}')
    await rig.event('action.required')
    expect(early).toBe(false)
    const own = app
      .delivered()
      .filter(({ session_id, type }) => session_id === session && /^(turn|action)/.test(type))
    expect(own.map(({ type }) => type)).toEqual(['turn.started', 'action.required'])
  })

  test('queued messages make turns that are all delivered, in their order', async () => {
    await using rig = await Rig.open({ details })
    const session = await rig.client.start('wait 100ms', 'say 0')
    for (let turn = 1; turn <= 5; turn++) await rig.client.send(session, `say ${turn}`)
    await until(
      'six turns',
      () => rig.emulator.ledger().turns.filter(({ artifacts }) => artifacts === 'ready').length === 6,
    )
    await assertWhole(rig)
    const order = rig.emulator.ledger().turns.map(({ id }) => id)
    for (const kind of ['turn.started', 'turn.completed', 'turn.settled']) {
      const delivered = rig.app
        .delivered()
        .filter(({ type }) => type === kind)
        .map(({ data }) => data.turn?.id)
      expect(delivered).toEqual(order)
    }
  })
})
