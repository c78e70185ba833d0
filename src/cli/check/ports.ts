import { createServer } from 'node:net'
import { request } from 'undici'
import type { Config } from '../../sidecar/config/config.ts'
import { listenText, urlOf, type ListenAddress } from '../../sidecar/config/listen.ts'
import { fingerprint } from '../../sidecar/fingerprint.ts'
import { fail, ok, warn, type Finding } from './finding.ts'
import type { Specs } from '../../sidecar/specs.ts'

/** Milliseconds to wait for a sidecar that may use a port. */
const TIMEOUT = 2000

/** Whether the ports of the listeners are free; a running sidecar may use them. */
export async function checkPorts(config: Config, specs: () => Promise<Specs | string>): Promise<Finding[]> {
  const { admin, webhooks } = config
  const [adminFault, webhookFault, running] = await Promise.all([
    bind(admin.listen),
    webhooks.enabled ? bind(webhooks.listen) : null,
    fingerprintAt(admin.listen),
  ])
  const isOther = running !== null && differs(config, await specs(), running)
  const finding = (key: string, address: ListenAddress, fault: string | null): Finding => {
    const at = listenText(address)
    if (fault === null) return ok(key, `${at} is free`)
    if (fault === 'EADDRINUSE' && running !== null) {
      const message = `${at} is used by a running sidecar`
      if (!isOther) return ok(key, message)
      const fix = `if this file was changed, restart the sidecar; if it is another sidecar, change ${key}`
      return warn(key, `${message} with other handlers, tools or settings than this file`, fix)
    }
    return fail(key, `${at} ${REASONS[fault] ?? fault}`, `end the program that uses it, or change ${key}`)
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

/** Whether a sidecar with the fingerprint `running` has other handlers, tools or settings. */
function differs(config: Config, specs: Specs | string, running: string): boolean {
  // Modules that cannot be imported have a finding of their own.
  return typeof specs !== 'string' && fingerprint(config, specs) !== running
}

/** The fingerprint of the configuration of the sidecar that listens there; null: no sidecar. Its metrics need no token. */
async function fingerprintAt(listen: ListenAddress): Promise<string | null> {
  try {
    const answer = await request(`${urlOf(listen)}/metrics`, { signal: AbortSignal.timeout(TIMEOUT) })
    const text = await answer.body.text()
    return /^session_sidecar_configuration_info\{fingerprint="([^"]*)"/m.exec(text)?.[1] ?? null
  } catch {
    return null
  }
}
