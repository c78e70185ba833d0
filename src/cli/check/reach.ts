import { connect } from 'node:net'
import type { Config, TargetConfig } from '../../config/config.ts'
import { fail, ok, type Finding } from './finding.ts'

/** Milliseconds to wait for a connection. */
const TIMEOUT = 3000

const REASONS: Record<string, string> = {
  ECONNREFUSED: 'nobody listens there',
  ENOTFOUND: 'the host is not known',
  EAI_AGAIN: 'the host is not known',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
}

/** Whether each handler and tool accepts connections. Nothing is sent: a check has no effect on an app. */
export async function checkTargets({ handlers, tools }: Config): Promise<Finding[]> {
  return await Promise.all([
    ...handlers.map(({ name, target }, index) =>
      targetFinding(`handler ${name}`, `handlers[${index}]`, target),
    ),
    ...tools.map(({ name, target }, index) => targetFinding(`tool ${name}`, `tools[${index}]`, target)),
  ])
}

async function targetFinding(subject: string, path: string, target: TargetConfig): Promise<Finding> {
  if (target.kind === 'module') return ok(subject, `is ${target.path}`)
  const fault = await reach(new URL(target.url))
  return fault === null
    ? ok(subject, `${target.url} accepts connections`)
    : fail(subject, `${target.url}: ${fault}`, `start the app, or correct ${path}.url`)
}

/** Why a connection could not be made; null when it could. */
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
