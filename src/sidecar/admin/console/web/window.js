import { html } from './html.js'
import { useEffect, useLayoutEffect, useRef, useState } from './vendor/hooks.js'

/** Rows that are drawn beyond the visible ones, on both sides. */
const BEYOND = 12
/** Rows before the end at which more are requested. */
const AHEAD = 40
const NARROW = matchMedia('(max-width: 720px)')

/** Heights in pixels; the style sheet has the same (`.row`). */
function rowHeight() {
  return NARROW.matches ? 68 : 44
}

/** A long list; only the visible rows are in the page. */
export function Window({ list, idOf, draw, label }) {
  const frame = useRef(null)
  const [place, setPlace] = useState({ top: 0, height: 800, row: rowHeight() })
  useLayoutEffect(() => {
    const measure = () => {
      const { scrollTop: top, clientHeight: height } = frame.current
      const row = rowHeight()
      setPlace((old) =>
        Math.floor(old.top / row) === Math.floor(top / row) && old.height === height && old.row === row
          ? old
          : { top, height, row },
      )
    }
    const sizes = new ResizeObserver(measure)
    sizes.observe(frame.current)
    const element = frame.current
    element.addEventListener('scroll', measure, { passive: true })
    measure()
    return () => {
      sizes.disconnect()
      element.removeEventListener('scroll', measure)
    }
  }, [])
  const { rows } = list
  const first = Math.max(0, Math.floor(place.top / place.row) - BEYOND)
  const end = Math.min(rows.length, Math.ceil((place.top + place.height) / place.row) + BEYOND)
  useEffect(() => {
    list.seen(first)
    if (end > rows.length - AHEAD) list.more()
  })
  return html`<div class="window" ref=${frame} role="list" aria-label=${label} tabindex="-1">
    <div class="window-all" style=${{ height: `${rows.length * place.row}px` }}>
      <div style=${{ transform: `translateY(${first * place.row}px)` }}>
        ${rows.slice(first, end).map((row) => html`<div class="row" role="listitem" key=${idOf(row)}>${draw(row)}</div>`)}
      </div>
    </div>
  </div>`
}
