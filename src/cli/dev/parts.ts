import { startEmulator, type Emulator, type Scenario } from '../../emulator/index.ts'
import type { Observer } from '../../core/observer.ts'
import type { ConfigInput } from '../../sidecar/config/schema.ts'
import { createSidecar, type Sidecar } from '../../sidecar/sidecar.ts'
import { codeOf } from '../../std/errors.ts'
import type { Environment } from '../../sidecar/config/expand.ts'

/** The token of every emulator that a command starts. */
export const TOKEN = 'svc_pat_dev'

/** The emulator, at `port` or, if that is in use, at a free one. `stack` closes it. */
export async function startService(
  stack: AsyncDisposableStack,
  scenario: Scenario,
  port = 0,
): Promise<Emulator> {
  try {
    const emulator = await startEmulator({
      scenario,
      token: TOKEN,
      allowHttpWebhooks: true,
      listen: { port },
    })
    stack.defer(() => emulator.close())
    return emulator
  } catch (error) {
    if (codeOf(error) !== 'EADDRINUSE' || port === 0) throw error
    return await startService(stack, scenario)
  }
}

/** How often a start may lose its port to another program. */
const RACES = 5

/**
 * A sidecar that reports to `observers`. `stack` stops it. Two `dev` that start together both find the
 * usual port free. The one that loses it asks `configure` again, which then chooses another port.
 */
export async function startSidecar(
  env: Environment,
  stack: AsyncDisposableStack,
  configure: () => Promise<ConfigInput>,
  observers: readonly Partial<Observer>[],
): Promise<Sidecar> {
  let current: Sidecar | undefined
  stack.defer(() => current?.stop())
  let tried: string | undefined
  for (let races = 0; ; races++) {
    const config = await configure()
    const sidecar = await createSidecar({ config, env })
    current = sidecar
    for (const one of observers) sidecar.observe(one)
    try {
      await sidecar.start()
      return sidecar
    } catch (error) {
      const { listen } = config.admin ?? {}
      const isLost = codeOf(error) === 'EADDRINUSE' && listen !== tried && races < RACES && !stack.disposed
      if (!isLost) throw error
      tried = listen
      await sidecar.stop()
    }
  }
}
