import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Observer } from '../core/observer.ts'
import { resolveConfig } from '../sidecar/config/load.ts'
import type { ConfigInput } from '../sidecar/config/schema.ts'
import { OperatorError } from '../std/errors.ts'
import { checkService } from './check/service.ts'
import type { Context } from './context.ts'
import { chooseAdmin, consoleOf } from './dev/config.ts'
import { follow } from './dev/follow.ts'
import { configOf, ownApp, type ForwardOptions } from './dev/own-app.ts'
import { showApp, showAppToPrograms, type AppShow } from './dev/show-app.ts'

interface ListenOptions extends ForwardOptions {
  baseUrl?: string
  tokenFile?: string
  tools: boolean
  json?: boolean
}

/** Forwards callbacks and function calls of the real service to the user's own app, until a signal. */
export async function listen(context: Context, options: ListenOptions): Promise<number> {
  const { terminal, env } = context
  await using stack = new AsyncDisposableStack()
  const app = await ownApp(options, env)
  const folder = await mkdtemp(path.join(tmpdir(), 'session-sidecar-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const config = {
    service: serviceOf(options, env),
    store: { url: `sqlite:${folder}/sidecar.db` },
    stream: { start_from: 'now' as const },
    admin: { listen: await chooseAdmin(env) },
    // Failures of the app are shown as lines.
    log: { level: 'error' as const },
  }
  const baseUrl = await prove({ ...config, ...configOf(app) }, options, env)
  const show = options.json === true ? showAppToPrograms(terminal, app) : showApp(terminal, app)
  const sidecar = await follow(context, stack, app, { config, show, observers: [connection(show)] })
  const hints = [
    ...(options.tools
      ? [
          'The functions of all sessions are called in your app, also of those that another program answers:',
          '  --no-tools leaves them to it; SIDECAR_SCOPE__METADATA=\'{"app":"billing"}\' follows only these sessions.',
        ]
      : []),
    `The store is in ${folder} and is removed at the end. Ctrl-C ends it.`,
  ]
  show.started({ service: baseUrl, token: null, admin: consoleOf(sidecar).url, hints })
  throw await sidecar.failed
}

/** What a flag does not give, the environment may. */
function serviceOf({ baseUrl, tokenFile }: ListenOptions, env: Context['env']): ConfigInput['service'] {
  if ((baseUrl ?? env['SIDECAR_SERVICE__BASE_URL']) === undefined)
    throw new OperatorError(
      'the address of the service is missing',
      2,
      'add --base-url https://agents.example.com',
    )
  if ((tokenFile ?? env['SIDECAR_SERVICE__TOKEN'] ?? env['SIDECAR_SERVICE__TOKEN_FILE']) === undefined)
    throw new OperatorError(
      'the token of the service is missing',
      2,
      'add --token-file FILE, or set SIDECAR_SERVICE__TOKEN',
    )
  return {
    base_url: baseUrl ?? '',
    ...(tokenFile === undefined ? {} : { token_file: path.resolve(tokenFile) }),
  }
}

/**
 * Asks the service before anything is started: a mistake in an address or token ends the command at once.
 * @returns the address. @throws {OperatorError} exit code 3 when the token is rejected.
 */
async function prove(input: ConfigInput, { tokenFile }: ListenOptions, env: Context['env']): Promise<string> {
  const { config } = await resolveConfig(input, { env })
  const { baseUrl } = config.service
  const fault = (await checkService(config)).find(({ state }) => state === 'fail')
  if (fault?.subject === 'token')
    throw new OperatorError(
      `${baseUrl}: the token of the service: ${fault.message}`,
      3,
      `create one in the Console of the service, and put it into ${tokenFile ?? 'SIDECAR_SERVICE__TOKEN'}`,
    )
  if (fault?.subject === 'service') {
    const [message = ''] = fault.message.replace(OPENSSL, '$1').split('\n')
    const fix = TLS.test(message)
      ? 'correct http or https in --base-url, or trust its authority: NODE_EXTRA_CA_CERTS=ca.pem'
      : 'correct --base-url, or the network of this machine'
    throw new OperatorError(message, 1, fix)
  }
  return baseUrl
}

const TLS = /certificate|SSL|TLS|EPROTO|wrong version/i
/** What OpenSSL writes around its reason. */
const OPENSSL = /[0-9A-F]+:error:(?:[^:]*:){3}([^:]*):.*/s

/** Says when the stream of the service is lost, and when it is back. */
function connection({ note }: AppShow): Partial<Observer> {
  let lost = false
  return {
    channel(name, { state, lastError }) {
      if (name !== 'stream') return
      if (state === 'waiting' && !lost && lastError !== null) {
        lost = true
        note({
          cause: `the stream of the service is interrupted: ${lastError}`,
          fix: 'wait: it connects again, and nothing is lost',
        })
      }
      if (state === 'live' && lost) {
        lost = false
        note({ cause: 'the stream of the service is back', fix: 'nothing to do' })
      }
    },
  }
}
