import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { SECRET } from '../support/app.ts'
import { Rig, type RigOptions } from '../support/rig.ts'
import { adminApi } from './admin-api.ts'
import { cli, type Ended } from './process.ts'

const QUIET: RigOptions = { channels: ['poll'] }

function trigger(rig: Rig, ...args: string[]): Promise<Ended> {
  return cli(['trigger', ...args, '--url', rig.program?.admin ?? ''])
}

/** Lines of the metrics that count facts and callbacks. */
async function counted(rig: Rig): Promise<string[]> {
  const { text } = (await rig.raw('GET', '/metrics')).body
  return String(text)
    .split('\n')
    .filter((line) => /^session_sidecar_(fact|callback)/.test(line))
}

describe('trigger', () => {
  test('sends a signed and marked test fact to a handler, which is neither stored nor counted', async () => {
    await using rig = await Rig.open(QUIET)
    const before = await counted(rig)
    const { code, out, err } = await trigger(rig, 'turn.settled', '--handler', 'app')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/^✓ app accepted it \(status 200, (\d+ ms|[\d.]+ s), evt_test_[0-9a-f]{16}\)\n$/)
    const [callback] = rig.app.callbacks
    expect(callback?.signedWith).toEqual([SECRET])
    expect(callback?.id).toMatch(/^evt_test_/)
    expect(callback?.events).toEqual([
      expect.objectContaining({
        id: callback?.id,
        type: 'turn.settled',
        session_id: 'session_test',
        delivery: { attempt: 1, handler: 'app', test: true },
        data: {
          turn: expect.objectContaining({ id: 'turn_test', status: 'completed', artifacts: 'ready' }),
          artifacts: [],
          artifacts_skipped: [],
          session: { title: 'Test', metadata: {}, status: 'idle' },
        },
      }),
    ])
    expect(await rig.list('/api/events')).toEqual([])
    expect(await rig.list('/api/deliveries')).toEqual([])
    expect(await counted(rig)).toEqual(before)
  })

  test('applies --data to the sample, and prints the outcome for programs', async () => {
    await using rig = await Rig.open({ ...QUIET, handler: { format: 'cloudevents' } })
    const data = '{"payload":{"text":"mine"}}'
    const { code, out } = await trigger(rig, 'agent.message', '--handler', 'app', '--data', data, '--json')
    expect(code).toBe(0)
    expect(JSON.parse(out)).toMatchObject({ handler: 'app', outcome: 'delivered', wanted: true, error: null })
    const sent = JSON.parse(rig.app.callbacks[0]?.raw ?? '') as Record<string, unknown>
    expect(sent).toMatchObject({
      specversion: '1.0',
      type: 'agent.message',
      data: { data: { payload: { text: 'mine' } }, delivery: { test: true } },
    })
  })

  test('names the fix when the app refuses the signature', async () => {
    await using rig = await Rig.open(QUIET)
    rig.app.handle = () => ({ status: 401 })
    const { code, err } = await trigger(rig, 'turn.settled', '--handler', 'app')
    expect({ code, err }).toEqual({
      code: 1,
      err: '  fix: if it refuses the signature, give the app the secret of the configuration\n',
    })
  })

  test('shows what would happen to a real fact, and warns of a type that the handler does not select', async () => {
    await using rig = await Rig.open({ ...QUIET, handler: { events: ['action.*'] } })
    rig.app.handle = () => ({ status: 503, body: 'closed until\n\u001b[31mnine' })
    const failing = await trigger(rig, 'turn.failed', '--handler', 'app')
    expect(failing.code).toBe(1)
    expect(failing.out).toMatch(/^✗ app failed; a real fact would be retried \(status 503, /)
    expect(failing.out).toContain('\n  │ closed until\n  │ [31mnine\n')
    expect(failing.err).toBe(
      'warning: the events of app do not include turn.failed: it gets no real facts of this type\n',
    )
    expect(rig.app.callbacks).toHaveLength(1)
    rig.app.handle = () => ({ status: 410 })
    expect((await trigger(rig, 'action.required', '--handler', 'app')).out).toContain('would pause it')
    expect((await rig.admin('GET', '/api/handlers'))['data']).toMatchObject([{ state: 'up' }])
  })

  test('reaches a handler in this process too, and reports an unreachable one', async () => {
    const seen: unknown[] = []
    await using rig = await Rig.open({
      ...QUIET,
      handlers: () => [{ name: 'down', url: 'http://127.0.0.1:9/' }],
      prepare: (sidecar) => sidecar.on('turn.*', (event) => void seen.push(event.delivery)),
    })
    expect((await trigger(rig, 'turn.started', '--handler', 'library')).code).toBe(0)
    expect(seen).toEqual([{ attempt: 1, handler: 'library', test: true }])
    const down = await trigger(rig, 'turn.started', '--handler', 'down')
    expect(down.code).toBe(1)
    expect(down.out).toMatch(/^✗ down is unreachable; real facts wait for it \(/)
    const missing = await trigger(rig, 'turn.started', '--handler', 'dwon')
    expect(missing.code).toBe(1)
    expect(missing.err).toContain('no handler has that name. Did you mean "down"?')
  })

  test('warns of an unknown type, and sends it: the service may have it', async () => {
    await using rig = await Rig.open(QUIET)
    const { code, err } = await trigger(rig, 'turn.setled', '--handler', 'app')
    expect(code).toBe(0)
    expect(err).toBe(
      'warning: "turn.setled" is not a known event type: nothing matches it unless the service sends it.' +
        ' Did you mean "turn.settled"?\n',
    )
    expect(rig.app.callbacks).toHaveLength(1)
  })

  test.each([['['], ['[]'], ['"x"']])('refuses the data %s', async (data) => {
    const { code, err } = await cli(['trigger', 'turn.settled', '--handler', 'app', '--data', data])
    expect({ code, err }).toEqual({
      code: 2,
      err: `error: --data must be a JSON object, such as '{"turn":{"status":"failed"}}'\n`,
    })
  })

  test('recognizes a sidecar that is too old by its version', async () => {
    const { url } = await adminApi({
      'GET /openapi.json': () => ({ info: { version: '0.0.1' }, paths: { '/api/status': { get: {} } } }),
    })
    const { code, err } = await cli(['trigger', 'turn.settled', '--handler', 'app', '--url', url])
    expect(code).toBe(1)
    expect(err).toMatch(
      /^error: the sidecar at http:\S+ is version 0\.0\.1 and cannot do this .*; this program is version \d.*\n {2}fix: run the same version of both\n$/,
    )
  })
})

describe('tools', () => {
  test('lists what to declare on a session', async () => {
    await using rig = await Rig.open({
      ...QUIET,
      tools: { lookup_order: { description: 'Finds an order', parameters: { type: 'object' } } },
    })
    const url = rig.program?.admin ?? ''
    const { out } = await cli(['tools', '--url', url])
    expect(out).toBe(
      'TOOL          DESCRIPTION     PARAMETERS\nlookup_order  Finds an order  {"type":"object"}\n',
    )
    const file = path.join(rig.folder, 'token')
    await writeFile(file, 'x')
    expect(JSON.parse((await cli(['tools', '--json', '--url', url, '--token-file', file])).out)).toEqual({
      type: 'function',
      name: 'lookup_order',
      description: 'Finds an order',
      parameters: { type: 'object' },
    })
  })
})
