import { useEffect, useState } from './vendor/hooks.js'

/**
 * How we stand with the sidecar: `unknown` at first, `signed_out` when it wants a token, `away` when it does not answer.
 */
const state = { kind: 'unknown', since: Date.now(), version: null, upgraded: false }
const listeners = new Set()

export function connection() {
  return state
}

export function setConnection(kind) {
  if (state.kind === kind) return
  Object.assign(state, { kind, since: Date.now() })
  tell()
}

/** A page that was loaded from another version than answers now may not fit it. */
export function sawVersion(version) {
  if (version === null) return
  state.version ??= version
  if (state.version === version || state.upgraded) return
  state.upgraded = true
  tell()
}

function tell() {
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
