import { Type } from 'typebox'
import type { Metrics } from '../metrics.ts'
import { Problem } from '../problem.ts'
import { route, type Answer, type Route } from '../route.ts'

export interface Readiness {
  ok: boolean
  checks: readonly { name: string; ok: boolean; detail?: string }[]
}

export interface ProbeSources {
  /** Store open, configuration valid, not draining. An unreachable service does not make us unready. */
  ready: () => Readiness
  /** The first read of the service is done, or the service is known to be unreachable. */
  started: () => boolean
  metrics: Pick<Metrics, 'scrape'>
}

const TEXT = 'text/plain; charset=utf-8'

export function probeRoutes({ ready, started, metrics }: ProbeSources): Route[] {
  return [
    probe('livez', 'Whether the process responds.', () => ({
      ok: true,
      checks: [{ name: 'event loop', ok: true }],
    })),
    probe('readyz', 'Whether the sidecar accepts work.', ready),
    probe('startupz', 'Whether the first read of the service is done.', () => {
      const ok = started()
      return { ok, checks: [{ name: 'first read', ok }] }
    }),
    route(
      {
        method: 'GET',
        path: '/metrics',
        summary: 'Metrics for Prometheus.',
        open: true,
        success: { status: 200, description: 'The text exposition format.', content: 'text/plain' },
      },
      async () => {
        const { contentType, body } = await metrics.scrape()
        return { status: 200, contentType, body }
      },
    ),
  ]
}

function probe(name: string, summary: string, look: () => Readiness): Route {
  return route(
    {
      method: 'GET',
      path: `/${name}`,
      summary,
      open: true,
      query: Type.Object({
        verbose: Type.Optional(Type.String({ description: 'One line for each check, for people.' })),
      }),
      success: { status: 200, description: 'Yes.', content: 'text/plain' },
      problems: [503],
    },
    ({ query }): Answer => {
      const { ok, checks } = look()
      if (query.verbose !== undefined) {
        return { status: ok ? 200 : 503, contentType: TEXT, body: verbose(name, ok, checks) }
      }
      if (ok) return { status: 200, contentType: TEXT, body: 'ok\n' }
      const failed = checks.filter((check) => !check.ok).map((check) => check.detail ?? check.name)
      throw new Problem('not_ready', `${name} check failed: ${failed.join(', ')}`)
    },
  )
}

function verbose(name: string, ok: boolean, checks: Readiness['checks']): string {
  const lines = checks.map((check) => {
    const detail = check.detail === undefined ? '' : `: ${check.detail}`
    return `[${check.ok ? '+' : '-'}] ${check.name} ${check.ok ? 'ok' : 'failed'}${detail}`
  })
  return `${[...lines, `${name} check ${ok ? 'passed' : 'failed'}`].join('\n')}\n`
}
