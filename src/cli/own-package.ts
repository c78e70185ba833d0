import { registerHooks } from 'node:module'

const FACES = new Map([
  ['agent-session-sidecar', 'index'],
  ['agent-session-sidecar/client', 'client/index'],
  ['agent-session-sidecar/emulator', 'emulator/index'],
])

/**
 * `/etc/sidecar/handlers.ts` in the container has no package installed beside it: it imports this
 * program's own package. So does a module in a clone of the repository that was not built.
 */
export function offerOwnPackage(): void {
  registerHooks({
    resolve(specifier, context, next) {
      const face = FACES.get(specifier)
      if (face === undefined) return next(specifier, context)
      try {
        return next(specifier, context)
      } catch (error) {
        if (!isNotFound(error)) throw error
        const extension = import.meta.url.slice(import.meta.url.lastIndexOf('.'))
        return next(new URL(`../${face}${extension}`, import.meta.url).href, context)
      }
    },
  })
}

function isNotFound(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND'
}
