import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { start } from '../cli/process.ts'
import { PROFILES } from './engines.ts'
import { assertWhole } from '../support/oracle.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

/** As long as a few rounds of polling and a stream's reconnect: a part that would ask again has done so by then, milliseconds. */
const QUIET = 700

describe.for(PROFILES)('the token (%s)', (details) => {
  // [fault auth-1]
  test('is revoked while running: no further request, the backlog is delivered, and a new token file continues the work', async () => {
    await using rig = await Rig.open({
      details,
      start: false,
      tools: { lookup_order: {} },
      handler: { retry: { attempts: 1000, base: '20ms', max: '100ms' } },
    })
    const file = path.join(rig.folder, 'token')
    await writeFile(file, rig.token.token)
    rig.config = { ...rig.config, service: { base_url: rig.gateway.url, token_file: file } }
    await rig.start()
    const { client, emulator, app, gateway } = rig
    app.handle = () => ({ status: 500 })
    await client.start('say backlog')
    await until('facts', async () => (await rig.list('/api/events?type=turn.settled')).length === 1)
    emulator.revokeToken(rig.token.id)
    await client.start('call lookup_order {"order_id":"42"}', 'say {{last}}')
    emulator.faults.set({ drop_streams: true })
    await until(
      'rejected token',
      async () => tokenState(await rig.admin('GET', '/api/status')) === 'rejected',
    )
    const { channels } = (await rig.admin('GET', '/api/status')) as { channels: { poll: unknown } }
    expect(channels.poll).toMatchObject({ state: 'stopped', last_error: 'the token was rejected' })
    expect((await rig.raw('GET', '/metrics')).body['text']).toContain('session_sidecar_token_accepted 0\n')
    await pause(200)
    const asked = gateway.passed.length
    app.handle = () => ({})
    await rig.event('turn.settled')
    await pause(QUIET)
    expect(gateway.passed.slice(asked)).toEqual([])
    expect(app.runs).toEqual([])
    expect((await rig.raw('GET', '/readyz')).status).toBe(200)

    await writeFile(
      file,
      emulator.mintToken(['sessions:read', 'sessions:write', 'tools:respond', 'artifacts:read']).token,
    )
    await rig.event('call.answered')
    await assertWhole(rig, { tools: ['lookup_order'] })
  })

  test('is replaced before it is rejected: its scopes are read again', async () => {
    await using rig = await Rig.open({ details, start: false, channels: ['poll'] })
    const file = path.join(rig.folder, 'token')
    await writeFile(file, rig.token.token)
    rig.config = { ...rig.config, service: { base_url: rig.gateway.url, token_file: file } }
    await rig.start()
    await writeFile(file, rig.emulator.mintToken(['sessions:read']).token)
    await expect
      .poll(async () => (await rig.admin('GET', '/api/status'))['token'])
      .toMatchObject({ state: 'accepted', scopes: ['sessions:read'] })
  })

  test('is replaced by a wrong one long after the start: polling has stopped since then', async () => {
    await using rig = await Rig.open({ details, start: false, channels: ['poll'] })
    const file = path.join(rig.folder, 'token')
    await writeFile(file, rig.token.token)
    rig.config = {
      ...rig.config,
      service: { base_url: rig.gateway.url, token_file: file },
      polling: { interval: '1h' },
    }
    await rig.start()
    const pollOf = async (): Promise<unknown> =>
      ((await rig.admin('GET', '/api/status')) as { channels: { poll: unknown } }).channels.poll
    await expect.poll(pollOf).toMatchObject({ state: 'live' })
    const replacedAt = Date.now()
    await writeFile(file, 'svc_pat_wrong')
    await expect.poll(pollOf).toMatchObject({ state: 'stopped' })
    const { since } = (await pollOf()) as { since: number }
    expect(since).toBeGreaterThanOrEqual(replacedAt)
  })

  // [fault auth-2]
  test('503 directory_unavailable is waited for, and is no 401', async () => {
    await using rig = await Rig.open({ details })
    const session = await rig.client.start('say Hello')
    await rig.event('turn.settled')
    await rig.client.send(session, 'wait 50ms', 'say again')
    // The stream may take all three refusals: it then waits up to 8 s before it opens again. With six it would be 60 s.
    rig.emulator.faults.set({ directory_unavailable: 3, retry_after: 1, drop_streams: true })
    await until('spent fault', () => rig.emulator.faults.get().directory_unavailable === 0)
    await assertWhole(rig)
    expect(tokenState(await rig.admin('GET', '/api/status'))).toBe('accepted')
    const refused = rig.gateway.passed.filter(({ status }) => status === 503)
    expect(refused.length).toBeGreaterThan(0)
  })

  // [fault auth-6]
  test('a service that errs, is full of HTML, resets or refuses by rate costs time and no fact', async () => {
    await using rig = await Rig.open({ details, tools: { lookup_order: {} } })
    const { client, emulator } = rig
    const session = await client.create()
    for (const faults of [{ server_errors: 3 }, { bad_gateway: 3 }, { rate_limit: 2, retry_after: 1 }]) {
      await client.send(session, 'wait 30ms', 'call lookup_order {"order_id":"42"}', 'say {{last}}')
      emulator.faults.set({ ...faults, drop_streams: true })
      await client.reached(session, 'idle')
      emulator.faults.set({})
    }
    await assertWhole(rig, { tools: ['lookup_order'] })
    const ends = rig.app.delivered().filter(({ type }) => type === 'turn.completed')
    expect(new Set(ends.map(({ id }) => id)).size).toBe(3)
  })

  test('a sidecar that was asked to wait stops at once, and the next one reads what it missed', async () => {
    await using rig = await Rig.open({ details })
    const session = await rig.client.start('say Hello')
    await rig.event('turn.settled')
    await rig.client.send(session, 'wait 500ms', 'say again')
    rig.emulator.faults.set({ rate_limit: 100, retry_after: 20 })
    await until('refusal', () => rig.gateway.passed.some(({ status }) => status === 429))
    rig.emulator.faults.set({})
    await rig.client.reached(session, 'idle')
    const begun = performance.now()
    await rig.stop()
    expect(performance.now() - begun).toBeLessThan(5000)
    await rig.start()
    await assertWhole(rig)
  })
})

describe.for(PROFILES)('a token that is not enough (%s)', (details) => {
  test('a token that is rejected at start ends the program with 3', async () => {
    await using rig = await Rig.open({ details, start: false })
    rig.emulator.revokeToken(rig.token.id)
    const file = path.join(rig.folder, 'sidecar.json')
    await writeFile(file, JSON.stringify(rig.config))
    const ended = await start(['run', '-c', file], { cwd: rig.folder }).ended
    expect(ended).toMatchObject({ code: 3, err: expect.stringContaining('401') })
    expect(ended.err).not.toContain(rig.token.token)
  })

  // [fault auth-3]
  test('without sessions:write and tools:respond only what needs them stops', async () => {
    await using rig = await Rig.open({
      details,
      start: false,
      channels: ['stream', 'poll'],
      tools: { lookup_order: {} },
    })
    const { token } = rig.emulator.mintToken(['sessions:read'])
    rig.config = { ...rig.config, service: { base_url: rig.gateway.url, token } }
    await rig.start()
    const lacks = rig.program?.lines.filter(({ message }) => message.startsWith('token: it lacks a scope'))
    expect(lacks?.map(({ details }) => details['scope'])).toEqual([
      'artifacts:read',
      'tools:respond',
      'sessions:write',
    ])
    const session = await rig.client.start('say Hello', 'write outputs/r.txt x')
    const { data } = await rig.event('turn.settled')
    expect(data.artifacts).toBeNull()
    await rig.client.send(session, 'call lookup_order {"order_id":"42"}')
    await until('run', () => rig.app.runs.length === 1)
    await until('refused answer', () => rig.gateway.passed.some(({ status }) => status === 403))
    await rig.client.start('say goes on')
    await until(
      'third turn',
      () => rig.app.delivered().filter(({ type }) => type === 'turn.settled').length === 2,
    )
    expect(rig.emulator.ledger().answers).toEqual([])
  })
})

function tokenState(status: Record<string, unknown>): unknown {
  return (status['token'] as { state: string }).state
}
