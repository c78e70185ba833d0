import { describe, expect, test } from 'vitest'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'
import { expressions, ROOT, RULES } from './documents.ts'
import { exec, FETCH, findPrometheus, Prometheus } from './prometheus.ts'

const binaries = await findPrometheus()

describe.skipIf(binaries === null)('Prometheus', () => {
  test('finds the rules sound, and each alert fires when it should', { timeout: FETCH }, async () => {
    const promtool = binaries?.promtool ?? ''
    expect((await exec(promtool, ['check', 'rules', RULES])).stdout).toContain('SUCCESS: 21 rules found')
    const { stdout } = await exec(promtool, ['test', 'rules', 'test/pictures/alerts.yaml'], { cwd: ROOT })
    expect(stdout).toContain('SUCCESS')
  })

  test('scrapes a sidecar and can parse every page of it', { timeout: FETCH }, async () => {
    await using rig = await Rig.open({
      handlers: (app) => [
        { name: 'app', url: app.handlerUrl('app') },
        { name: 'down', url: 'http://127.0.0.1:9/' },
      ],
      tools: { lookup_order: { description: 'Finds an order', parameters: { type: 'object' } } },
    })
    await rig.client.start('call lookup_order {}')
    await rig.event('turn.settled')
    const target = new URL(rig.program?.admin ?? '').host
    await using prometheus = await Prometheus.start(binaries?.prometheus ?? '', rig.folder, target)
    await until(
      'scrape',
      async () =>
        (await prometheus.query('session_sidecar_turns_total{outcome="completed"} == 1')).length > 0,
      20_000,
    )
    for (const expr of expressions()) await prometheus.query(expr)
    for (const expr of [
      'session_sidecar_stream_connected == 1',
      'session_sidecar_callback_queue_depth{handler="down"} > 0',
      'session_sidecar_sessions{status="idle"} == 1',
    ]) {
      expect([expr, (await prometheus.query(expr)).length]).toEqual([expr, 1])
    }
    interface Rules {
      groups: { rules: { name: string; health: string; state: string }[] }[]
    }
    const rules = await until(
      'evaluation of the rules',
      async () => {
        const all = (await prometheus.api<Rules>('rules')).groups.flatMap((group) => group.rules)
        const stateOf = (alert: string) => all.find(({ name }) => name === alert)?.state
        // The first evaluation may come before the first scrape: then no sidecar is known.
        return stateOf('HandlerDown') === 'pending' && stateOf('SidecarAbsent') === 'inactive'
          ? all
          : undefined
      },
      20_000,
    )
    expect(rules.map(({ name, health }) => [name, health])).toEqual(rules.map(({ name }) => [name, 'ok']))
    const raised = rules.filter(({ state }) => state !== 'inactive').map(({ name }) => name)
    expect(raised).toEqual(['HandlerDown'])
  })
})
