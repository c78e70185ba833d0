import { get } from './api.js'
import { connection } from './connection.js'
import { useEffect, useReducer, useRef } from './vendor/hooks.js'

/** Entries of a page; the maximum of the API. */
const PAGE = 100
/** Milliseconds between reads of the visible rows. */
const EVERY = 2000

/**
 * A list of the API. It is read as far as the user scrolls, and visible rows are read again. The
 * newest entries come first, so the entry before a page identifies the page, even if entries are
 * added above.
 */
export function useRows(path, query, idOf) {
  const key = `${path} ${JSON.stringify(query)}`
  const [, redraw] = useReducer((n) => n + 1, 0)
  const kept = useRef(null)
  if (kept.current?.key !== key) {
    kept.current = { key, rows: [], hasMore: false, loaded: false, error: null, busy: false, first: 0 }
  }
  const state = kept.current

  const read = async (start) => {
    if (state.busy) return
    state.busy = true
    try {
      const after = start === 0 ? undefined : idOf(state.rows[start - 1])
      const page = await get(path, { ...query, limit: PAGE, after })
      merge(state, start, page, idOf)
      Object.assign(state, { loaded: true, error: null })
    } catch (error) {
      state.error = error
    }
    state.busy = false
    if (kept.current === state) redraw()
  }

  useEffect(() => {
    void read(0)
    const timer = setInterval(() => {
      if (document.hidden || connection().kind === 'signed_out') return
      const start = Math.max(0, state.first - PAGE / 4)
      void read(start < PAGE / 2 ? 0 : start)
    }, EVERY)
    return () => clearInterval(timer)
  }, [key])

  return {
    rows: state.rows,
    hasMore: state.hasMore,
    loaded: state.loaded,
    error: state.error,
    more: () => state.hasMore && void read(state.rows.length),
    /** Sets the first visible entry. */
    seen: (index) => (state.first = index),
    again: () => read(0),
  }
}

/** Replaces the entries that a page covers. */
function merge(state, start, page, idOf) {
  const { rows } = state
  const last = page.data.at(-1)
  // The entry before the page was removed: keep the present rows until the list is read from its
  // top.
  if (last === undefined && start > 0) return
  const end = last === undefined ? -1 : rows.findIndex((row) => idOf(row) === idOf(last))
  if (!page.has_more || end === -1) {
    state.rows = [...rows.slice(0, start), ...page.data]
    state.hasMore = page.has_more
    return
  }
  state.rows = [...rows.slice(0, start), ...page.data, ...rows.slice(end + 1)]
}
