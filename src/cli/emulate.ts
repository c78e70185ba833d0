import closeWithGrace from 'close-with-grace'
import type { ListenAddress } from '../sidecar/config/listen.ts'
import { OperatorError } from '../std/errors.ts'
import {
  DataFileError,
  startEmulator,
  type Emulator,
  type EmulatorOptions,
  type OpenPart,
} from '../emulator/index.ts'
import type { Context } from './context.ts'
import { reportFailure } from './failure.ts'
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
  const emulator = await start({
    listen,
    token,
    openDetails: options.openDetails,
    leaveOut: options.leaveOut ?? [],
    allowHttpWebhooks: options.allowHttpWebhooks === true,
    allowedHosts: options.allowHost ?? [],
    ...(scenario === undefined ? {} : { scenario: readScenario(scenario) }),
    ...(data === undefined ? {} : { data }),
  })
  const { paint } = terminal
  const address = emulator.baseUrl
  terminal.out(
    options.json === true
      ? jsonLine({ address, token })
      : `${paint('dim', 'address')}  ${address}\n${paint('dim', 'token')}    ${token}\n\n` +
          `Try:\n  curl -H 'Authorization: Bearer ${token}' ${address}/v1/health\n`,
  )
  closeWithGrace({ logger: false }, async ({ err }) => {
    if (err !== undefined) reportFailure(ofOperator(err), terminal)
    await emulator.close()
  })
  return await new Promise<never>(() => undefined)
}

/**
 * @throws {OperatorError} for a data file that cannot be used.
 */
async function start(options: EmulatorOptions): Promise<Emulator> {
  try {
    return await startEmulator(options)
  } catch (error) {
    throw ofOperator(error)
  }
}

function ofOperator(error: unknown): unknown {
  return error instanceof DataFileError ? new OperatorError(error.message, 2) : error
}
