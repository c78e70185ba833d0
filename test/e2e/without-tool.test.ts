import { expect, test } from 'vitest'
import { createSidecar, defineHandlers, type Observer } from '../../src/index.ts'
import type { Log } from '../../src/std/ports.ts'
import { loadSpecs } from '../../src/sidecar/specs.ts'
import { resolveConfig } from '../../src/sidecar/config/load.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

type CallWithoutTool = Parameters<Observer['callWithoutTool']>[0]

async function metric(rig: Rig): Promise<number> {
  const { text } = (await rig.raw('GET', '/metrics')).body
  const line = String(text)
    .split('\n')
    .find((one) => one.startsWith('session_sidecar_calls_without_tool_total '))
  return Number(line?.split(' ')[1])
}

test('a function call without a tool is counted once, and status, console and log show the fix', async () => {
  const seen: CallWithoutTool[] = []
  await using rig = await Rig.open({
    tools: { lookup_order: {} },
    prepare: (sidecar) => void sidecar.observe({ callWithoutTool: (call) => void seen.push(call) }),
  })
  expect(await metric(rig)).toBe(0)
  const first = await rig.client.start('call lookup_ordr {"order_id":"42"}')
  const second = await rig.client.start('call lookup_ordr {} & call lookup_order {}')
  // A call is listed as soon as it is stored. Its advice follows in the commit that looks for its tool.
  const actions = await until('both calls', async () => {
    const all = await rig.list('/api/actions')
    const known = all.length === 2 && all.every((action) => action['advice'] !== null)
    return known && seen.length === 2 ? all : undefined
  })
  const advice = 'no tool answers `lookup_ordr`: add it under `tools`'
  expect(actions.map((action) => action['advice'])).toEqual([advice, advice])
  expect(await rig.admin('GET', '/api/status')).toMatchObject({
    needs_action: [{ function: 'lookup_ordr', calls: 2, advice }],
  })
  expect(await metric(rig)).toBe(2)
  expect(seen.map(({ name }) => name)).toEqual(['lookup_ordr', 'lookup_ordr'])
  // Two sessions are read in either order.
  expect(new Set(seen.map(({ sessionId }) => sessionId))).toEqual(new Set([first, second]))

  // Another process answers one of them.
  const [answered] = actions
  await rig.client.answer(String(answered?.['session_id']), String(answered?.['call_id']), 'shipped')
  await until('one call left', async () => (await rig.list('/api/actions')).length === 1 || undefined)
  expect(await rig.admin('GET', '/api/status')).toMatchObject({ needs_action: [{ calls: 1 }] })
  expect(await metric(rig)).toBe(2)
})

test('a tool for any function answers those without a tool of their own', async () => {
  await using rig = await Rig.open({ tools: { lookup_order: {}, '*': {} } })
  rig.app.run = ({ call }) => ({ body: call.name })
  await rig.client.start('call check_stock {} & call lookup_order {} & call not.a.name {}')
  const runs = await until('the two runs', () => (rig.app.runs.length === 2 ? rig.app.runs : undefined))
  const called = runs.map(({ name, call }) => `${name} ${call.name}`)
  expect(called.toSorted()).toEqual(['check_stock check_stock', 'lookup_order lookup_order'])
  await until('the answers', async () => (await rig.list('/api/actions')).length === 1 || undefined)
  // A name that no function may have is not put into an address.
  const advice =
    'no tool can have the name `not.a.name`: give the function another name, or answer it in another program'
  expect((await rig.list('/api/actions')).map((action) => action['advice'])).toEqual([advice])
  expect(await rig.admin('GET', '/api/status')).toMatchObject({
    needs_action: [{ function: 'not.a.name', calls: 1, advice }],
  })
  expect((await rig.list('/api/tools')).map(({ name }) => name)).toEqual(['lookup_order'])
})

test('an approval and a tool of ours need no tool', async () => {
  await using rig = await Rig.open({ tools: { lookup_order: {} } })
  rig.app.run = () => ({ status: 202 })
  await rig.client.start('approve shell ls & call lookup_order {}')
  await rig.client.start('call lookup_order {}')
  await until('open actions', async () => (await rig.list('/api/actions')).length >= 2 || undefined)
  const advice = (await rig.list('/api/actions')).map((action) => action['advice'])
  expect(new Set(advice)).toEqual(new Set([null]))
  expect(await rig.admin('GET', '/api/status')).toMatchObject({ needs_action: [] })
  expect(await metric(rig)).toBe(0)
})

test.each([
  ['a warning where other tools are configured', true, 'warn'],
  ['information where none is: another process answers on purpose', false, 'info'],
] as const)('the log has %s, one line for many calls', async (_, configured, level) => {
  await using rig = await Rig.open({ start: false, tools: configured ? { lookup_order: {} } : {} })
  const lines: [string, object][] = []
  const line = (of: string) => (details: object, message: string) => {
    if (message.startsWith('tools: no configured tool')) lines.push([of, details])
  }
  const log: Log = {
    debug: () => undefined,
    info: line('info'),
    warn: line('warn'),
    error: () => undefined,
    child: () => log,
  }
  const sidecar = await createSidecar({ config: rig.config, log })
  let seen = 0
  sidecar.observe({ callWithoutTool: () => void seen++ })
  await sidecar.start()
  try {
    for (let n = 0; n < 5; n++) await rig.client.start('call lookup_ordr {}')
    await until('five calls', () => seen === 5 || undefined)
  } finally {
    await sidecar.stop()
  }
  expect(lines).toEqual([[level, expect.objectContaining({ function: 'lookup_ordr', times: 1 })]])
})

test('event types of modules and of on that are not known are named at the start', async () => {
  const { config } = await resolveConfig({ service: { base_url: 'http://127.0.0.1:1', token: 't' } })
  const { events, handle } = defineHandlers({ on: { ['turn.setled' as 'turn.settled']: () => undefined } })
  expect((await loadSpecs(config, { events, handle, tools: [] })).warnings).toEqual([
    'sidecar: on "turn.setled" is not a known event type: nothing matches it unless the service sends it. Did you mean "turn.settled"?',
  ])
})
