import { connection } from './connection.js'
import { useEffect, useRef, useState } from './vendor/hooks.js'

/** Milliseconds between reads; after each failed read the next one comes later. */
const EVERY = 2000
const SLOWEST = 15_000

/**
 * Calls `look` now, periodically while the page is visible, and when `key` changes. @returns its
 * last result; `error` when the last call failed; `again` calls it at once.
 */
export function useLive(look, key) {
  const [state, setState] = useState({ key, data: null, error: null })
  const latest = useRef(look)
  latest.current = look
  const again = useRef(() => {})
  useEffect(() => {
    let timer = null
    let ended = false
    let failures = 0
    const turn = async () => {
      clearTimeout(timer)
      try {
        const data = await latest.current()
        failures = 0
        if (!ended)
          setState((old) =>
            old.data === data && old.error === null && old.key === key ? old : { key, data, error: null },
          )
      } catch (error) {
        failures++
        if (!ended) setState((old) => ({ key, data: old.key === key ? old.data : null, error }))
      }
      clearTimeout(timer)
      if (ended || document.hidden || connection().kind === 'signed_out') return
      timer = setTimeout(turn, Math.min(SLOWEST, EVERY * 2 ** Math.min(failures, 5)))
    }
    again.current = turn
    const wake = () => {
      if (!document.hidden) void turn()
    }
    document.addEventListener('visibilitychange', wake)
    window.addEventListener('online', wake)
    void turn()
    return () => {
      ended = true
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', wake)
      window.removeEventListener('online', wake)
    }
  }, [key])
  const { data, error } = state.key === key ? state : { data: null, error: null }
  return { data, error, again: () => again.current() }
}

/** Draws again every second, so that an age such as `5 s` stays right. */
export function useNow() {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [])
  return now
}
