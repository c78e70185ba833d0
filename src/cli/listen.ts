import { existsSync } from 'node:fs'
import path from 'node:path'
import type { Observer } from '../core/observer.ts'
import { resolveConfig } from '../sidecar/config/load.ts'
import type { ConfigInput } from '../sidecar/config/schema.ts'
import { OperatorError } from '../std/errors.ts'
import { checkService } from './check/service.ts'
import type { Finding } from './check/finding.ts'
import { closeAtEnd } from './closing.ts'
import type { Context } from './context.ts'
import { adviceOnTls, type Advice } from './dev/advice.ts'
import { chooseAdmin, consoleOf, temporaryFolder } from './dev/config.ts'
import { appObservers } from './dev/observe.ts'
import { configOf, ownApp, type ForwardOptions } from './dev/own-app.ts'
import { startSidecar } from './dev/parts.ts'
import { showApp, showAppToPrograms, type AppShow } from './dev/show-app.ts'

interface ListenOptions extends ForwardOptions {
  baseUrl?: string
  tokenFile?: string
  tools: boolean
  json?: boolean
}

/** Forwards callbacks and function calls of the real service to the user's own app, until a signal. */
export async function listen(context: Context, options: ListenOptions): Promise<number> {
  const { terminal } = context
  const env = withoutGiven(options, context.env)
  await using stack = new AsyncDisposableStack()
  closeAtEnd(stack, terminal)
  const app = await ownApp(options, env)
  const given = {
    service: serviceOf(options, env),
    stream: { start_from: 'now' as const },
    // Failures of the app are printed as lines of their own: the log need not repeat them.
    log: { level: 'error' as const },
  }
  const { baseUrl, doubts } = await prove({ ...given, ...configOf(app) }, options, env)
  const show = options.json === true ? showAppToPrograms(terminal, app) : showApp(context, app)
  if (options.tools) show.note(OF_ALL)
  const folder = await temporaryFolder(stack)
  const configure = async () => ({
    ...given,
    store: { url: `sqlite:${folder}/sidecar.db` },
    admin: { listen: await chooseAdmin(env) },
    ...configOf(app),
  })
  const observers = [...appObservers(show), connection(show)]
  const sidecar = await startSidecar(env, stack, configure, observers)
  const hints = [`The store is in ${folder} and is removed at the end. Ctrl-C ends this command.`]
  show.started({ service: baseUrl, token: null, admin: consoleOf(sidecar), hints })
  for (const doubt of doubts) show.note(doubt)
  throw await sidecar.failed
}

/** Shown before the first call, because another program may answer the functions of the same organization. */
const OF_ALL: Advice = {
  cause: 'function calls of all sessions run in your app, also those that another program should answer',
  fix: `if so, use --no-tools, or SIDECAR_SCOPE__METADATA='{"app":"billing"}' to follow only sessions with this metadata`,
}

/** A flag overrides the environment. The store that the environment names for `run` is not used. */
function withoutGiven({ baseUrl, tokenFile }: ListenOptions, env: Context['env']): Context['env'] {
  const given = [
    ...(baseUrl === undefined ? [] : ['SIDECAR_SERVICE__BASE_URL']),
    ...(tokenFile === undefined ? [] : ['SIDECAR_SERVICE__TOKEN', 'SIDECAR_SERVICE__TOKEN_FILE']),
  ]
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !given.includes(name) && !name.startsWith('SIDECAR_STORE__')),
  )
}

/** The values without a flag come from the environment. */
function serviceOf({ baseUrl, tokenFile }: ListenOptions, env: Context['env']): ConfigInput['service'] {
  if ((baseUrl ?? env['SIDECAR_SERVICE__BASE_URL']) === undefined)
    throw new OperatorError(
      'the address of the service is missing',
      2,
      'add --base-url https://agents.example.com',
    )
  if (baseUrl !== undefined && !/^https?:\/\/./.test(baseUrl))
    throw new OperatorError(
      `--base-url: "${baseUrl}" is not an http or https address`,
      2,
      'give one such as https://agents.example.com',
    )
  if ((tokenFile ?? env['SIDECAR_SERVICE__TOKEN'] ?? env['SIDECAR_SERVICE__TOKEN_FILE']) === undefined)
    throw new OperatorError(
      'the token of the service is missing',
      2,
      'add --token-file FILE, or set SIDECAR_SERVICE__TOKEN',
    )
  if (tokenFile !== undefined && !existsSync(tokenFile))
    throw new OperatorError(
      `${tokenFile} does not exist`,
      2,
      'create an access token in the Console of the service, and write it into that file',
    )
  return {
    base_url: baseUrl ?? '',
    ...(tokenFile === undefined ? {} : { token_file: path.resolve(tokenFile) }),
  }
}

/**
 * Asks the service before anything is started: a mistake in an address or token ends the command at once.
 * @returns the address, and what will not work. @throws {OperatorError} exit code 3 when the token is rejected.
 */
async function prove(
  input: ConfigInput,
  { tokenFile }: ListenOptions,
  env: Context['env'],
): Promise<{ baseUrl: string; doubts: Advice[] }> {
  const { config } = await resolveConfig(input, { env })
  const { baseUrl } = config.service
  const findings = await checkService(config)
  const fault = findings.find(({ state }) => state === 'fail')
  if (fault?.subject === 'token')
    throw new OperatorError(
      `${baseUrl}: ${fault.message}`,
      3,
      `create one in the Console of the service, and put it into ${tokenFile ?? env['SIDECAR_SERVICE__TOKEN_FILE'] ?? 'SIDECAR_SERVICE__TOKEN'}`,
    )
  if (fault?.subject === 'service') {
    const tls = adviceOnTls(fault.message)
    if (tls !== null) throw new OperatorError(tls.cause, 1, tls.fix)
    throw new OperatorError(fault.message, 1, 'correct --base-url, or the network of this machine')
  }
  return { baseUrl, doubts: findings.flatMap(doubtsOf) }
}

/** Scopes and routes that are missing, but do not end the command, each with what does not work without it. */
function doubtsOf({ subject, state, message, fix = '' }: Finding): Advice[] {
  return state === 'ok' ? [] : [{ cause: `${subject}: ${message}`, fix }]
}

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
          fix: 'nothing to do: it connects again, and the sessions are read meanwhile',
        })
      }
      if (state === 'live' && lost) {
        lost = false
        note({ cause: 'the stream of the service is back', fix: 'nothing to do' })
      }
    },
  }
}
