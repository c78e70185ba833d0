import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { Histogram } from 'prom-client'
import { parse } from 'yaml'
import { createMetrics } from '../../src/sidecar/admin/metrics.ts'
import { processMetrics } from '../../src/sidecar/admin/metrics/process.ts'
import { silentLog } from './log.ts'
import { alerts, dashboard, DASHBOARD, expressions, ROOT, RULES } from './documents.ts'

const { registry } = createMetrics({
  build: { version: '0', configuration: '0f' },
  store: () => {
    throw new Error('nothing is scraped')
  },
  clock: { steady: () => 0 },
  log: silentLog,
  handlers: [],
  tools: [],
  tokenExpiresAt: () => null,
})

/** Names of the series that a scrape has. */
function series(): Set<string> {
  const metrics = [...registry.getMetricsAsArray(), ...processMetrics().getMetricsAsArray()]
  return new Set(
    metrics.flatMap((metric) => {
      const { name } = metric as unknown as { name: string }
      return metric instanceof Histogram ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name]
    }),
  )
}

function namesIn(text: string): string[] {
  return [...new Set(text.match(/\b(?:session_sidecar|process|nodejs)_[a-z0-9_]+/g) ?? [])]
}

describe('every metric named', () => {
  test.each([
    ['in the dashboard', DASHBOARD],
    ['in the rules', RULES],
  ])('%s exists', (_where, file) => {
    const names = namesIn(readFileSync(file, 'utf8'))
    expect(names.length).toBeGreaterThan(8)
    const known = series()
    expect(names.filter((name) => !known.has(name))).toEqual([])
  })

  test('by us is shown in the dashboard, except metrics without a useful picture', () => {
    const shown = new Set(
      namesIn(readFileSync(DASHBOARD, 'utf8')).map((name) => name.replace(/_bucket$/, '')),
    )
    const all = registry.getMetricsAsArray().map((metric) => (metric as unknown as { name: string }).name)
    expect(all.filter((name) => !shown.has(name))).toEqual([
      'session_sidecar_leader',
      'session_sidecar_shards_owned',
      'session_sidecar_lease_renewals_total',
      'session_sidecar_configuration_info',
      'session_sidecar_stream_frames_unattributed_total',
      'session_sidecar_stream_last_event_timestamp_seconds',
      'session_sidecar_stream_seq',
      'session_sidecar_webhook_subscription_active',
      'session_sidecar_session_outcomes_total',
      'session_sidecar_fenced_writes_total',
      'session_sidecar_store_accepts_writes',
      'session_sidecar_artifact_oldest_pending_timestamp_seconds',
      'session_sidecar_sessions_foreign',
      'session_sidecar_stream_frames_held',
      'session_sidecar_service_clock_offset_seconds',
      'session_sidecar_token_accepted',
      'session_sidecar_store_readable',
    ])
  })
})

describe('the dashboard', () => {
  test('has panels that say what they show and do not overlap', () => {
    const panels = dashboard().panels
    const taken = new Set<string>()
    for (const { type, title, description, gridPos } of panels) {
      expect(title).not.toBe('')
      expect(type === 'row' ? 'a row' : description).toBeTruthy()
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect([title, taken.has(`${x},${y}`)]).toEqual([title, false])
          expect(x).toBeLessThan(24)
          taken.add(`${x},${y}`)
        }
      }
    }
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    expect(expressions().length).toBeGreaterThan(25)
  })
})

describe('the alerts', () => {
  test('are those that are promised, each with a test, a summary and a line in the runbook', () => {
    const names = alerts().map(({ alert }) => alert)
    expect(names).toEqual([
      'StreamDown',
      'ChannelMissing',
      'ReadsLate',
      'FramesUnreadable',
      'CallbackBacklogOld',
      'DeadLetters',
      'DeadLettersKept',
      'HandlerDown',
      'ActionWaiting',
      'ToolFailing',
      'ToolCallsLost',
      'SlotsNearLimit',
      'TokenRejected',
      'TokenExpiring',
      'SubscriptionInactive',
      'StoreRefusesWrites',
      'StoreUnreadable',
      'NoLeader',
      'ShardsUnowned',
      'ReplicasDiffer',
      'SidecarAbsent',
    ])
    const { tests } = parse(readFileSync(path.join(ROOT, 'test/pictures/alerts.yaml'), 'utf8')) as {
      tests: { alert_rule_test: { alertname: string; exp_alerts?: unknown[] }[] }[]
    }
    const fired = tests.flatMap(({ alert_rule_test: cases }) =>
      cases.filter((one) => one.exp_alerts !== undefined).map(({ alertname }) => alertname),
    )
    expect(fired).toEqual(names)
    const document = readFileSync(path.join(ROOT, 'config/README.md'), 'utf8')
    const runbook = document.split('### When an alert fires')[1]?.split('\n#')[0] ?? ''
    for (const { alert, annotations } of alerts()) {
      expect(annotations.summary).toBeTruthy()
      expect(runbook).toMatch(new RegExp(`^\\| \`${alert}\` +\\|.{40}`, 'm'))
    }
  })
})
