import { createServer } from 'node:net'
import { request } from 'undici'
import type { Config } from '../../sidecar/config/config.ts'
import type { ListenAddress } from '../../sidecar/config/listen.ts'
import { fail, ok, type Finding } from './finding.ts'

/** Milliseconds to wait for a sidecar that may use a port. */
const TIMEOUT = 2000

/** Whether the ports of the listeners are free; a running sidecar may use them. */
export async function checkPorts({ admin, webhooks }: Config): Promise<Finding[]> {
  const [adminFault, webhookFault, running] = await Promise.all([
    bind(admin.listen),
    webhooks.enabled ? bind(webhooks.listen) : null,
    sidecarAt(admin.listen),
  ])
  const finding = (key: string, { host, port }: ListenAddress, fault: string | null): Finding => {
    if (fault === null) return ok(key, `${host}:${port} is free`)
    if (fault === 'EADDRINUSE' && running) return ok(key, `${host}:${port} is used by a running sidecar`)
    return fail(
      key,
      `${host}:${port} ${REASONS[fault] ?? fault}`,
      `end the program that uses it, or change ${key}`,
    )
  }
  return [
    finding('admin.listen', admin.listen, adminFault),
    ...(webhooks.enabled ? [finding('webhooks.listen', webhooks.listen, webhookFault)] : []),
  ]
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use by another program',
  EADDRNOTAVAIL: 'is not an address of this machine',
  EACCES: 'needs more permissions, as ports below 1024 often do',
}

/** The code of the error; null when the port is free. */
async function bind({ host, port }: ListenAddress): Promise<string | null> {
  return await new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)))
  })
}

/** Whether a sidecar answers there: its probe needs no token. */
async function sidecarAt({ host, port }: ListenAddress): Promise<boolean> {
  const reachable = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  const name = reachable.includes(':') ? `[${reachable}]` : reachable
  try {
    const answer = await request(`http://${name}:${port}/metrics`, { signal: AbortSignal.timeout(TIMEOUT) })
    return (await answer.body.text()).includes('session_sidecar_build_info')
  } catch {
    return false
  }
}
