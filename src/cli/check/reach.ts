import { connect } from 'node:net'
import type { Config, TargetConfig } from '../../sidecar/config/config.ts'
import { fail, ok, warn, type Finding } from './finding.ts'
import type { Specs } from '../../sidecar/specs.ts'

/** Milliseconds to wait for a connection. */
const TIMEOUT = 3000

const REASONS: Record<string, string> = {
  ECONNREFUSED: 'no program listens there',
  ENOTFOUND: 'the host is unknown',
  EAI_AGAIN: 'the host is unknown',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
}

/**
 * Whether each handler and tool accepts connections, and each module can be imported. No request is
 * sent: a check has no effect on an app.
 */
export async function checkTargets(config: Config, specs: () => Promise<Specs | string>): Promise<Finding[]> {
  const { handlers, tools } = config
  const targets = [
    ...handlers.map(({ name, target }, index) => ({
      subject: `handler ${name}`,
      path: `handlers[${index}]`,
      target,
    })),
    ...tools.map(({ name, target }, index) => ({ subject: `tool ${name}`, path: `tools[${index}]`, target })),
  ]
  // An import may take 10 s, and a connection 3 s: at the same time, they take 10 s in all.
  const reached = Promise.all(targets.map((target) => targetFinding(target)))
  const usesModules = targets.some(({ target }) => target.kind === 'module')
  const modules = usesModules ? await specs() : { tools, warnings: [] }
  const isUsable = typeof modules !== 'string'
  const findings = (await reached).filter((_, at) => isUsable || targets[at]?.target.kind === 'http')
  if (typeof modules === 'string')
    return [
      fail('modules', modules, 'correct it: until then, "session-sidecar run" does not start'),
      ...findings,
    ]
  const own = modules.tools.filter(({ name }) => !tools.some((tool) => tool.name === name))
  return [
    ...modules.warnings.map((warning) => warn('modules', warning, 'correct the type in the module')),
    ...findings,
    ...own.map(({ name }) => ok(`tool ${name}`, 'is in a module')),
  ]
}

/** A handler or tool, and its key in the configuration. */
interface Target {
  subject: string
  path: string
  target: TargetConfig
}

async function targetFinding({ subject, path, target }: Target): Promise<Finding> {
  if (target.kind === 'module') return ok(subject, `is ${target.path}`)
  const fault = await reach(new URL(target.url))
  return fault === null
    ? ok(subject, `${target.url} accepts connections`)
    : fail(subject, `${target.url}: ${fault}`, `start the app, or correct ${path}.url`)
}

/** The reason for a failed connection; null when it succeeded. */
async function reach(url: URL): Promise<string | null> {
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return await new Promise((resolve) => {
    const socket = connect({ host, port })
    const end = (fault: string | null): void => {
      socket.destroy()
      resolve(fault)
    }
    socket.setTimeout(TIMEOUT, () => end(`no answer within ${TIMEOUT / 1000} s`))
    socket.once('connect', () => end(null))
    socket.once('error', (error: NodeJS.ErrnoException) => end(REASONS[error.code ?? ''] ?? error.message))
  })
}
