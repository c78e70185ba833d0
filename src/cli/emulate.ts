import closeWithGrace from 'close-with-grace'
import type { ListenAddress } from '../config/listen.ts'
import { startEmulator } from '../emulator/index.ts'
import type { Context } from './context.ts'
import { reportFailure } from './failure.ts'
import { readScenario } from './scenario.ts'

interface EmulateOptions {
  listen: ListenAddress
  scenario?: string
  token: string
  openDetails: 'a' | 'b'
  allowHttpWebhooks?: boolean
}

export async function emulate({ terminal }: Context, options: EmulateOptions): Promise<number> {
  const { listen, token, scenario } = options
  const emulator = await startEmulator({
    listen,
    token,
    openDetails: options.openDetails,
    allowHttpWebhooks: options.allowHttpWebhooks === true,
    ...(scenario === undefined ? {} : { scenario: readScenario(scenario) }),
  })
  const { paint } = terminal
  terminal.out(`${paint('dim', 'address')}  ${emulator.baseUrl}\n${paint('dim', 'token')}    ${token}\n\n`)
  terminal.out(`Try:\n  curl -H 'Authorization: Bearer ${token}' ${emulator.baseUrl}/v1/health\n`)
  closeWithGrace({ logger: false }, async ({ err }) => {
    if (err !== undefined) reportFailure(err, terminal)
    await emulator.close()
  })
  return await new Promise<never>(() => undefined)
}
