import { Type } from 'typebox'
import type { Metrics } from '../metrics.ts'
import { described, route, type Description, type Route } from '../route.ts'

/** The probes, which `probes.ts` answers. */
export const PROBES: readonly Description[] = [
  probe('livez', 'Whether the process responds.'),
  probe('readyz', 'Whether the sidecar accepts work.'),
  probe('startupz', 'Whether the first read of the service is done.'),
]

function probe(name: string, summary: string): Description {
  return described({
    method: 'GET',
    path: `/${name}`,
    summary,
    open: true,
    query: Type.Object({
      verbose: Type.Optional(Type.String({ description: 'One line for each check, for people.' })),
    }),
    success: { status: 200, description: 'Yes.', content: 'text/plain' },
    problems: [503],
  })
}

export function metricsRoute(metrics: Pick<Metrics, 'scrape'>): Route {
  return route(
    {
      method: 'GET',
      path: '/metrics',
      summary: 'Metrics for Prometheus.',
      open: true,
      success: { status: 200, description: 'The text exposition format.', content: 'text/plain' },
    },
    async (_request, reply) => {
      const { contentType, body } = await metrics.scrape()
      reply.type(contentType)
      return body
    },
  )
}
