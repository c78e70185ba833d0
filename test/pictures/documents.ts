import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parse } from 'yaml'

export const ROOT = path.resolve(import.meta.dirname, '../..')
export const DASHBOARD = path.join(ROOT, 'config/grafana/sidecar.json')
export const RULES = path.join(ROOT, 'config/prometheus/alerts.yaml')

interface Panel {
  id: number
  type: string
  title: string
  description?: string
  gridPos: { x: number; y: number; w: number; h: number }
  targets?: { expr: string }[]
}

export function dashboard(): { panels: Panel[] } {
  return JSON.parse(readFileSync(DASHBOARD, 'utf8')) as { panels: Panel[] }
}

/** What the dashboard asks, with what Grafana puts in place of its variables. */
export function expressions(): string[] {
  return dashboard().panels.flatMap(({ targets = [] }) =>
    targets.map(({ expr }) => expr.replaceAll('$instance', '.*').replaceAll('$__rate_interval', '1m')),
  )
}

export function alerts(): { alert: string; expr: string; annotations: { summary: string } }[] {
  const { groups } = parse(readFileSync(RULES, 'utf8')) as { groups: { rules: ReturnType<typeof alerts> }[] }
  return groups.flatMap(({ rules }) => rules)
}
