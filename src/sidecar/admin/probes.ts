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
}

/** Answers the probe at a path. @throws {Problem} when its check fails and `verbose` is not asked for. */
export type Probe = (verbose: boolean) => { status: number; text: string }

/** The probes by path. A start is measured by them, so they need neither schemas nor the framework. */
export function createProbes({ ready, started }: ProbeSources): ReadonlyMap<string, Probe> {
  const checks: Readonly<Record<string, () => Readiness>> = {
    livez: () => single('event loop', true),
    readyz: ready,
    startupz: () => single('first read', started()),
  }
  return new Map(Object.entries(checks).map(([name, look]) => [`/${name}`, probe(name, look)]))
}

function single(name: string, ok: boolean): Readiness {
  return { ok, checks: [{ name, ok }] }
}

function probe(name: string, look: () => Readiness): Probe {
  return (verbose) => {
    const { ok, checks } = look()
    if (verbose) return { status: ok ? 200 : 503, text: linesOf(name, ok, checks) }
    if (ok) return { status: 200, text: 'ok\n' }
    const failed = checks.filter((check) => !check.ok).map((check) => check.detail ?? check.name)
    throw new Problem('not_ready', `${name} check failed: ${failed.join(', ')}`)
  }
}

function linesOf(name: string, ok: boolean, checks: Readiness['checks']): string {
  const lines = checks.map((check) => {
    const detail = check.detail === undefined ? '' : `: ${check.detail}`
    return `[${check.ok ? '+' : '-'}] ${check.name} ${check.ok ? 'ok' : 'failed'}${detail}`
  })
  return `${[...lines, `${name} check ${ok ? 'passed' : 'failed'}`].join('\n')}\n`
}
