import { useEffect, useState } from './vendor/hooks.js'

/**
 * The connection to the sidecar. `kind`: `unknown` at first, `here` after an answer, `signed_out` when the sidecar
 * requires a token, `unreachable` when it does not answer.
 */
const state = { kind: 'unknown', since: Date.now(), version: null, upgraded: false }
const listeners = new Set()

export function connection() {
  return state
}

export function setConnection(kind) {
  if (state.kind === kind) return
  Object.assign(state, { kind, since: Date.now() })
  notify()
}

/** After an upgrade of the sidecar, a page that was loaded before may not fit the new version. */
export function sawVersion(version) {
  if (version === null) return
  state.version ??= version
  if (state.version === version || state.upgraded) return
  state.upgraded = true
  notify()
}

function notify() {
  for (const listener of listeners) listener()
}

export function useConnection() {
  const [, redraw] = useState(0)
  useEffect(() => {
    const listener = () => redraw((n) => n + 1)
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, [])
  return { ...state }
}
