import { OperatorError } from '../std/errors.ts'
import type { Clock, Http, Log, Random } from '../std/ports.ts'
import { Explorer } from './explorer.ts'
import { Requester } from './transport/requester.ts'
import { discoverWhole } from './discovery/whole.ts'
import type { WholeDiscovery, WholeName, WholeOverrides } from './discovery/whole.ts'
import { systemClock } from '../system/clock.ts'
import { createHttp } from '../system/http.ts'
import { systemRandom } from '../system/random.ts'
import { actionsOf, type Actions } from './actions.ts'
import { agentsOf, profilesOf, templatesOf, type Agents, type Profiles, type Templates } from './agents.ts'
import { artifactsOf, type Artifacts } from './artifacts.ts'
import { filesOf, type Files } from './files.ts'
import { connectorsOf, credentialsOf, type Connectors, type Credentials } from './models.ts'
import type { CallOptions } from './request.ts'
import { readHealth, type Health, type Turn } from './resource.ts'
import { run, type RunOptions } from './run.ts'
import { sessionsOf, type Sessions } from './sessions.ts'
import { openStream, type EventStream, type StreamOptions } from './stream.ts'
import { previewsOf, toolsOf, type Previews, type SessionToolsApi } from './tools.ts'
import { isSendable, Transport, type Token } from './transport.ts'
import { itemsOf, turnsOf, type Items, type Turns } from './turns.ts'
import { webhooksOf, type Webhooks } from './webhooks.ts'

export interface ClientOptions {
  /** The service's base address, without `/v1`. */
  baseUrl: string
  /** An access token, or a function that returns the current one; the function is called before every request. */
  token: Token
  /** Paths and words that discovery cannot find, or finds wrongly. */
  routes?: WholeOverrides
  /** Milliseconds for a call with all its waits and attempts. Default 60 s. */
  timeout?: number
  /** Milliseconds for one attempt. Default 30 s. */
  attemptTimeout?: number
  /** Requests under way at once, not counting streams and downloads. Default 8. */
  maxInFlight?: number
  /** Replaces the client's own HTTP. `close` does not close it. */
  http?: Http
  /** Replaces the clock of the machine. */
  clock?: Clock
  random?: Random
  /** Receives reports of retries and refusals. Default: none. */
  log?: Log
}

/** Every operation of the Agent Session Service. Every method throws ServiceError, and TypeError for unusable arguments. */
export interface Client extends AsyncDisposable {
  readonly sessions: Sessions
  readonly turns: Turns
  readonly items: Items
  readonly actions: Actions
  readonly tools: SessionToolsApi
  readonly previews: Previews
  readonly files: Files
  readonly artifacts: Artifacts
  /** The events of the whole organization. */
  readonly events: { stream(options?: StreamOptions): Promise<EventStream> }
  readonly webhooks: Webhooks
  readonly connectors: Connectors
  readonly credentials: Credentials
  readonly agents: Agents
  readonly templates: Templates
  readonly profiles: Profiles
  /**
   * Sends a message and waits for its turn, answering function calls meanwhile. Only for sessions
   * that no other program drives.
   */
  run(sessionId: string, text: string, options?: RunOptions): Promise<Turn>
  /** The permissions of the token. The cheapest check that it is valid. */
  health(options?: CallOptions): Promise<Health>
  /** The routes of the service's own description; read once, with the first call. */
  discover(options?: CallOptions): Promise<WholeDiscovery>
  /** How many requests each rate bucket has left, as the service last reported. */
  budget(): Record<string, number>
  /** Ends all work under way, including streams and downloads, and closes every connection. */
  close(): Promise<void>
}

const MUTE: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => MUTE,
}

/**
 * A client of the Agent Session Service. Creating one opens no connection and starts no timer.
 * @throws {TypeError} on a `baseUrl`, `token` or `routes` that cannot be used.
 */
export function createClient(options: ClientOptions): Client {
  const { http = createHttp(), clock = systemClock(), random = systemRandom(), log = MUTE } = options
  const { timeout = 60_000, attemptTimeout = 30_000, maxInFlight = 8 } = options
  const baseUrl = addressOf(options.baseUrl)
  const { token } = options
  if (typeof token !== 'function' && !isSendable(token))
    throw new TypeError('token: give an access token, or a function that gives one')
  const requester: Requester = new Requester({
    baseUrl,
    http,
    clock,
    random,
    log,
    token: typeof token === 'string' ? token : '',
    found: () => explorer.found,
    observe: undefined,
    onRetry: undefined,
    onBudget: undefined,
    timeout: attemptTimeout,
    patience: timeout,
    maxInFlight,
  })
  const explorer = explorerOf(requester, clock, log, options.routes)
  const transport = new Transport({
    clock,
    random,
    token,
    requester,
    explorer,
    timeout,
  })
  const close = async (): Promise<void> => {
    requester.stop()
    if (options.http === undefined) await http.close()
  }
  const sessions = sessionsOf(transport)
  const turns = turnsOf(transport)
  const items = itemsOf(transport)
  const actions = actionsOf(transport)
  return {
    sessions,
    turns,
    items,
    actions,
    tools: toolsOf(transport),
    previews: previewsOf(transport),
    files: filesOf(transport),
    artifacts: artifactsOf(transport),
    events: {
      stream: (streamOptions) =>
        openStream(transport, async () => (await transport.routeOf('openStream')).path, streamOptions),
    },
    webhooks: webhooksOf(transport),
    connectors: connectorsOf(transport),
    credentials: credentialsOf(transport),
    agents: agentsOf(transport),
    templates: templatesOf(transport),
    profiles: profilesOf(transport),
    run: (session, text, runOptions) =>
      run({ transport, sessions, turns, items, actions }, session, text, runOptions),
    health: (callOptions) => transport.call('health', {}, callOptions, readHealth, 'the health report'),
    discover: (callOptions) =>
      transport.within('health', callOptions, async () => explorer.found, 'discover'),
    budget: () => requester.budget.remaining(),
    close,
    [Symbol.asyncDispose]: close,
  }
}

function explorerOf(
  requester: Requester,
  clock: Clock,
  log: Log,
  routes: WholeOverrides | undefined,
): Explorer<WholeName, WholeDiscovery> {
  try {
    return new Explorer<WholeName, WholeDiscovery>({
      requester,
      clock,
      log,
      discover: (document) => discoverWhole(document, routes),
    })
  } catch (error) {
    if (error instanceof OperatorError)
      throw new TypeError(error.message.replace('service.routes', 'routes'), { cause: error })
    throw error
  }
}

function addressOf(baseUrl: string): string {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '')
    throw new TypeError(`baseUrl: ${JSON.stringify(baseUrl)} is not an http or https address`)
  return baseUrl.replace(/\/+$/, '')
}
