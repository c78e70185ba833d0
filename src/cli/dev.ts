import { OperatorError } from '../std/errors.ts'
import type { Context } from './context.ts'
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
  const stray = Object.entries(OWN_APP).find(([name]) => Object.hasOwn(options, name))
  if (forwardTo === undefined && stray !== undefined)
    throw new OperatorError(`option '${stray[1]}' needs --forward-to, the address of your app`, 2)
  // Loading takes a second or two, so print a line first.
  const parts = forwardTo === undefined ? ', the sidecar and an app' : ' and the sidecar'
  if (!json) terminal.err(terminal.paintErr('dim', `Starting the service${parts} ...\n`))
  if (crash) return await (await import('./dev/crash.ts')).crash(context, options)
  if (forwardTo === undefined) return await (await import('./dev/tour.ts')).tour(context, options)
  const { forwardingTo } = await import('./dev/forward.ts')
  return await forwardingTo({ ...options, forwardTo })(context, options, [])
}
