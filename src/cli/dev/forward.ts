import { watch } from 'node:fs'
import path from 'node:path'
import { playTour, type Emulator, type Scenario } from '../../emulator/index.ts'
import { OperatorError } from '../../std/errors.ts'
import { closeAtEnd } from '../closing.ts'
import type { Context, Run } from '../context.ts'
import { reportFailure } from '../failure.ts'
import { readScenario } from '../scenario.ts'
import { Accepted } from './accepted.ts'
import { isComplete, settled } from './compare.ts'
import { CONSOLE_PORT, consoleOf, devConfig, temporaryFolder } from './config.ts'
import { appObservers } from './observe.ts'
import { configOf, ownApp, type ForwardOptions } from './own-app.ts'
import { startService, startSidecar, TOKEN } from './parts.ts'
import { renderSummary, showToPrograms } from './show.ts'
import { showApp, showAppToPrograms } from './show-app.ts'

export interface PlayOptions {
  once?: boolean
  scenario?: string
  send?: string
  watch?: boolean
  json?: boolean
}

const SERVICE_PORT = 4010
/** How long to wait after a change of the file, because an editor writes it in several steps. Milliseconds. */
const CALM = 100

/** `dev` with the user's own app in place of the example. */
export function forwardingTo(to: ForwardOptions): Run<PlayOptions> {
  return (context, options) => forward(context, to, options)
}

/** The emulator and a sidecar, whose callbacks and function calls go to the user's own app. */
async function forward(context: Context, to: ForwardOptions, options: PlayOptions): Promise<number> {
  const { terminal, env } = context
  const { scenario: file, once = false, json = false } = options
  const scenario = file === undefined ? { name: 'lines' } : readScenario(file)
  const play = planOf(scenario, options.send)
  if (once && play.sessions?.length === 0)
    throw new OperatorError(`${file} has no sessions: there is nothing to run`, 1)
  await using stack = new AsyncDisposableStack()
  closeAtEnd(stack, terminal, once ? 1 : 0)
  const start = Date.now()
  const app = await ownApp(to, env)
  const emulator = await startService(stack, scenario, SERVICE_PORT)
  const show = json ? showAppToPrograms(terminal, app) : showApp(context, app)
  const accepted = new Accepted()
  const folder = await temporaryFolder(stack)
  const configure = async () => ({
    ...(await devConfig({ baseUrl: emulator.baseUrl, token: TOKEN }, env, folder)),
    ...configOf(app),
  })
  const sidecar = await startSidecar({}, stack, configure, [
    ...appObservers(show),
    ...(once ? [accepted.observer] : []),
  ])
  const admin = consoleOf(sidecar)
  const hints = [
    ...(emulator.baseUrl.endsWith(`:${SERVICE_PORT}`) ? [] : [inUse(SERVICE_PORT, 'service')]),
    ...(admin.usual || env['SIDECAR_ADMIN__LISTEN'] !== undefined ? [] : [inUse(CONSOLE_PORT, 'console')]),
    ...(play.sessions?.length === 0 ? howToSend(emulator.baseUrl) : []),
    'Ctrl-C ends it.',
  ]
  show.started({ service: emulator.baseUrl, token: TOKEN, admin, hints })

  await playTour({ baseUrl: emulator.baseUrl, token: TOKEN, scenario: play })
  if (once) {
    const comparison = await settled(emulator.baseUrl, accepted.events, accepted)
    const took = Date.now() - start
    if (json) showToPrograms(terminal).ended(comparison, took)
    else terminal.out(renderSummary(comparison, took, terminal.paint))
    return isComplete(comparison) ? 0 : 1
  }
  if (options.watch === true && file !== undefined) replayOnChange(context, emulator, file, stack)
  return await new Promise<never>(() => undefined)
}

function inUse(port: number, what: string): string {
  return `Port ${port} is in use by another program, so the ${what} has the port that is shown above.`
}

/** A command to paste, which creates a session with a message that calls a function. */
function howToSend(baseUrl: string): string[] {
  const body = JSON.stringify({ input: { text: 'call lookup_order {"order_id":"42"}\nsay {{last}}' } })
  return [
    'Send a message with --send, from your app, or with this command. Each line is a step of the agent; `help` lists the steps:',
    `  curl -sS ${baseUrl}/v1/sessions -H 'Authorization: Bearer ${TOKEN}' -H 'Content-Type: application/json' -d '${body}'`,
  ]
}

/** The sessions of the file, and one for `--send`. */
function planOf(scenario: Scenario, send: string | undefined): Scenario {
  const sent =
    send === undefined ? [] : [{ title: send.split('\n', 1)[0]?.slice(0, 60) ?? '', messages: [send] }]
  return { ...scenario, sessions: [...(scenario.sessions ?? []), ...sent] }
}

/** Plays the scenario again, in new sessions, whenever its file has changed. A file with faults is reported, and not played. */
function replayOnChange(
  { terminal }: Context,
  emulator: Emulator,
  file: string,
  stack: AsyncDisposableStack,
): void {
  let timer: NodeJS.Timeout | undefined
  const replay = async (): Promise<void> => {
    const scenario = readScenario(file)
    emulator.follow(scenario)
    terminal.err(terminal.paintErr('dim', `${file} has changed: playing it again\n`))
    await playTour({ baseUrl: emulator.baseUrl, token: TOKEN, scenario })
  }
  // Watches the folder, because some editors replace the file instead of writing into it.
  const watcher = watch(path.dirname(path.resolve(file)), (_event, name) => {
    if (name !== path.basename(file)) return
    clearTimeout(timer)
    timer = setTimeout(() => void replay().catch((error: unknown) => reportFailure(error, terminal)), CALM)
  })
  stack.defer(() => watcher.close())
}
