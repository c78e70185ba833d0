import { useEffect, useRef } from './vendor/hooks.js'

export const KEYS = [
  ['j / k', 'next, previous entry'],
  ['enter', 'open the entry'],
  ['/', 'filter'],
  ['esc', 'leave the filter, close, go up'],
  ['g then o s n d h', 'overview, sessions, needs action, deliveries, handlers'],
  ['?', 'these keys'],
]

const PLACES = { o: '#/', s: '#/sessions', n: '#/actions', d: '#/deliveries', h: '#/handlers' }
/**
 * Milliseconds within which a second key belongs to `g`, by the times of the key presses: a busy
 * page handles keys late.
 */
const CHORD = 2000

/** `j` and `k` move through entries with `data-item`. */
export function useKeys(actions) {
  const latest = useRef(actions)
  latest.current = actions
  useEffect(() => {
    let chordUntil = 0
    const press = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      const typing = event.target.matches('input, select, textarea')
      if (event.key === 'Escape') {
        if (typing) event.target.blur()
        else latest.current.onEscape()
        return
      }
      if (typing || document.querySelector('dialog[open]') !== null) return
      const place = event.timeStamp < chordUntil ? PLACES[event.key] : undefined
      chordUntil = 0
      if (place !== undefined) location.hash = place
      else if (event.key === 'g') chordUntil = event.timeStamp + CHORD
      else if (event.key === 'j') step(1)
      else if (event.key === 'k') step(-1)
      else if (event.key === '/') document.querySelector('[data-filter]')?.focus()
      else if (event.key === '?') latest.current.onHelp()
      else return
      event.preventDefault()
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [])
}

function step(by) {
  const items = [...document.querySelectorAll('[data-item]')]
  const at = items.indexOf(document.activeElement)
  const next = at === -1 ? items[firstSeen(items)] : items[at + by]
  next?.focus()
  next?.scrollIntoView({ block: 'nearest' })
}

function firstSeen(items) {
  const top = document.querySelector('main')?.getBoundingClientRect().top ?? 0
  return Math.max(
    0,
    items.findIndex((item) => item.getBoundingClientRect().top >= top),
  )
}
