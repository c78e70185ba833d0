import { OperatorError } from '../std/errors.ts'
import type { Context } from './context.ts'
import type { PlayOptions } from './dev/forward.ts'
import type { ForwardOptions } from './dev/own-app.ts'

/** Options that make sense with the user's own app only, as they are typed. */
const OWN_APP = {
  send: '--send',
  watch: '--watch',
  tool: '--tool',
  events: '--events',
  secretFile: '--secret-file',
}

type DevOptions = Partial<ForwardOptions> & { json?: boolean; crash?: boolean }

/** The command `dev`: the demonstration of a crash, the tour with the example app, or the user's own app. */
export async function dev(context: Context, options: DevOptions): Promise<number> {
  const { terminal } = context
  const { forwardTo, json = false, crash = false } = options
  checkTogether(options, options)
  // Loading takes a second or two, so print a line first.
  const parts = forwardTo === undefined ? ', the sidecar and an app' : ' and the sidecar'
  if (!json) terminal.err(terminal.paintErr('dim', `Starting the emulator${parts} ...\n`))
  if (crash) return await (await import('./dev/crash.ts')).crash(context, options)
  if (forwardTo === undefined) return await (await import('./dev/tour.ts')).tour(context, options)
  const { forwardingTo } = await import('./dev/forward.ts')
  return await forwardingTo({ ...options, forwardTo })(context, options, [])
}

/** @throws {OperatorError} for options that make no sense together. */
function checkTogether(to: Partial<ForwardOptions>, play: PlayOptions): void {
  const { once = false, watch = false, scenario, send } = play
  const refuse = (message: string, fix?: string): never => {
    throw new OperatorError(message, 2, fix)
  }
  if (to.forwardTo === undefined) {
    const stray = Object.entries(OWN_APP).find(([name]) => Object.hasOwn(play, name))
    if (stray !== undefined) refuse(`option '${stray[1]}' needs --forward-to, the address of your app`)
    return
  }
  if (once && send === undefined && scenario === undefined)
    refuse(
      '--once ends when all messages are done, and no message is sent',
      'add --send TEXT or --scenario FILE',
    )
  if (once && to.events !== undefined)
    refuse(
      '--once checks that all events were delivered, and --events leaves some out',
      'leave out --events or --once',
    )
  if (once && watch)
    refuse('--once ends the command, and --watch continues it', 'leave out --watch or --once')
  if (watch && scenario === undefined) refuse('--watch has no file to watch', 'add --scenario FILE')
}
