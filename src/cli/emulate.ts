import type { ListenAddress } from '../sidecar/config/listen.ts'
import { startEmulator, type OpenPart } from '../emulator/index.ts'
import type { Context } from './context.ts'
import { closeAtEnd } from './closing.ts'
import { readScenario } from './scenario.ts'
import { jsonLine } from './terminal.ts'

interface EmulateOptions {
  listen: ListenAddress
  scenario?: string
  token: string
  openDetails: 'a' | 'b'
  leaveOut?: OpenPart[]
  allowHttpWebhooks?: boolean
  allowHost?: string[]
  data?: string
  json?: boolean
}

export async function emulate({ terminal }: Context, options: EmulateOptions): Promise<number> {
  const { listen, token, scenario, data } = options
  await using stack = new AsyncDisposableStack()
  const emulator = await startEmulator({
    listen,
    token,
    openDetails: options.openDetails,
    leaveOut: options.leaveOut ?? [],
    allowHttpWebhooks: options.allowHttpWebhooks === true,
    allowedHosts: options.allowHost ?? [],
    ...(scenario === undefined ? {} : { scenario: readScenario(scenario) }),
    ...(data === undefined ? {} : { data }),
  })
  stack.defer(() => emulator.close())
  closeAtEnd(stack, terminal)
  const { paint } = terminal
  // In a container it listens on every address; a client on the same machine needs one of them.
  const address = emulator.baseUrl.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
  terminal.out(
    options.json === true
      ? jsonLine({ address, token })
      : `${paint('dim', 'address')}  ${address}\n${paint('dim', 'token')}    ${token}\n\n` +
          `Try:\n  curl -H 'Authorization: Bearer ${token}' ${address}/v1/health\n`,
  )
  return await new Promise<never>(() => undefined)
}
