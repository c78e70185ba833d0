import { rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { listenText } from '../../sidecar/config/listen.ts'
import type { ConfigInput } from '../../sidecar/config/schema.ts'
import type { Environment } from '../../sidecar/config/expand.ts'
import type { Sidecar } from '../../sidecar/sidecar.ts'

/** The port at which the other commands look for a sidecar. */
export const CONSOLE_PORT = 8481
const ADMIN = `127.0.0.1:${CONSOLE_PORT}`

/** A configuration without handlers and tools. */
export type BaseConfig = Omit<ConfigInput, 'handlers' | 'tools'>

/** Where the console listens: as the environment says, as usual, or at a free port. */
export async function chooseAdmin(env: Environment): Promise<string> {
  return env['SIDECAR_ADMIN__LISTEN'] ?? `127.0.0.1:${await freePort(Number(portOf(ADMIN)))}`
}

/** The console of a sidecar that runs. `usual`: the commands find it by themselves. */
export function consoleOf({ address }: Sidecar): { url: string; usual: boolean } {
  const at = address.admin === null ? '' : listenText(address.admin)
  return { url: `http://${at}`, usual: at === ADMIN }
}

/** How `dev` follows its emulator: by all three channels, with an empty store in `folder`. */
export async function devConfig(
  service: { baseUrl: string; token: string },
  env: Environment,
  folder: string,
): Promise<BaseConfig> {
  const webhooks = `127.0.0.1:${await freePort(0)}`
  const listen = await chooseAdmin(env)
  return {
    service: { base_url: service.baseUrl, token: service.token },
    store: { url: `sqlite:${folder}/sidecar.db` },
    stream: { start_from: 'beginning' },
    webhooks: { enabled: true, listen: webhooks, public_url: `http://${webhooks}/webhooks` },
    polling: { interval: '2s', sweep: '15s' },
    admin: { listen },
    // Failures of the app are printed as lines of their own: the log need not repeat them.
    log: { level: 'error' },
  }
}

function portOf(listen: string): string {
  return listen.slice(listen.lastIndexOf(':') + 1)
}

/**
 * A folder for a store, removed with `stack`: two commands that start together, in one working directory, share no file.
 * A second Ctrl-C, or a closed pipe, ends the process at once: the folder must be removed then, too.
 */
export async function temporaryFolder(stack: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'session-sidecar-'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  process.once('exit', remove)
  stack.defer(() => {
    process.off('exit', remove)
    remove()
  })
  return folder
}

/** `wanted` if it is free on loopback, else a free port. 0 means any. */
async function freePort(wanted: number): Promise<number> {
  return (await tryPort(wanted)) ?? (await tryPort(0)) ?? 0
}

async function tryPort(port: number): Promise<number | null> {
  const server = createServer()
  return await new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(null)
      else reject(error)
    })
    server.listen({ host: '127.0.0.1', port }, () => {
      const address = server.address() as AddressInfo
      server.close(() => resolve(address.port))
    })
  })
}
