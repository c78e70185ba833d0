import type { Config } from '../../sidecar/config/config.ts'
import type { Specs } from '../../sidecar/specs.ts'
import { messageOf } from '../../std/errors.ts'
import { offerOwnPackage } from '../own-package.ts'

/** Milliseconds to wait for modules. */
const IMPORT = 10_000

/** The handlers and tools with their modules imported, or the reason why they cannot be used, as `run` reports it. */
export async function readSpecs(config: Config): Promise<Specs | string> {
  offerOwnPackage()
  const { loadSpecs } = await import('../../sidecar/specs.ts')
  const { promise: late, resolve } = Promise.withResolvers<string>()
  const limit = setTimeout(() => resolve(`are not imported within ${IMPORT / 1000} s`), IMPORT)
  try {
    return await Promise.race([loadSpecs(config, { events: [], handle: () => undefined, tools: [] }), late])
  } catch (error) {
    return messageOf(error)
  } finally {
    clearTimeout(limit)
  }
}
