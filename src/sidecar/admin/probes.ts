import type { Metrics } from './metrics.ts'
import { Problem } from './problem.ts'

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

interface Text {
  status: number
  contentType: string
  body: string
}

/** Answers a path that needs no token. @throws {Problem} when a check fails and `verbose` is not asked for. */
export type Probe = (verbose: boolean) => Text | Promise<Text>

/**
 * The paths that Kubernetes and Prometheus read. They are answered without the framework, which takes 8 MB, and as long
 * to load as the rest of a start.
 */
export function createProbes({ ready, started, metrics }: ProbeSources): ReadonlyMap<string, Probe> {
  return new Map<string, Probe>([
    probe('livez', () => single('event loop', true)),
    probe('readyz', ready),
    probe('startupz', () => single('first read', started())),
    ['/metrics', async () => ({ status: 200, ...(await metrics.scrape()) })],
  ])
}

function single(name: string, ok: boolean): Readiness {
  return { ok, checks: [{ name, ok }] }
}

function probe(name: string, look: () => Readiness): [string, Probe] {
  const answer = (verbose: boolean): Text => {
    const { ok, checks } = look()
    const failed = checks.filter((check) => !check.ok).map((check) => check.detail ?? check.name)
    if (!ok && !verbose) throw new Problem('not_ready', `${name} check failed: ${failed.join(', ')}`)
    const body = verbose ? linesOf(name, ok, checks) : 'ok\n'
    return { status: ok ? 200 : 503, contentType: 'text/plain; charset=utf-8', body }
  }
  return [`/${name}`, answer]
}

function linesOf(name: string, ok: boolean, checks: Readiness['checks']): string {
  const lines = checks.map((check) => {
    const detail = check.detail === undefined ? '' : `: ${check.detail}`
    return `[${check.ok ? '+' : '-'}] ${check.name} ${check.ok ? 'ok' : 'failed'}${detail}`
  })
  return `${[...lines, `${name} check ${ok ? 'passed' : 'failed'}`].join('\n')}\n`
}
