import { age, date, isTime, visible, written } from './format.js'
import { html } from './html.js'
import { useNow } from './live.js'

const TONES = {
  good: ['live', 'up', 'delivered', 'answered', 'completed', 'idle', 'ready', 'accepted', 'settled'],
  busy: ['working', 'pending', 'running', 'received', 'finished', 'connecting'],
  warn: [
    'requires_action',
    'paused',
    'removed',
    'waiting',
    'partial',
    'not_delivered',
    'unknown',
    'approval',
    'question',
  ],
  bad: ['failed', 'dead', 'down', 'rejected', 'stopped'],
}
const TONE = new Map(Object.entries(TONES).flatMap(([tone, words]) => words.map((word) => [word, tone])))

/** A state in a word; the colour only repeats it. */
export function Badge({ word, tone }) {
  return html`<span class=${`badge ${tone ?? TONE.get(word) ?? 'quiet'}`}
    >${visible(word).replaceAll('_', ' ')}</span
  >`
}

/** How long ago, kept up to date; the exact time as a tooltip. */
export function Age({ at, suffix = '' }) {
  const now = useNow()
  // A value of the service may be no valid time: then no age is shown.
  if (!isTime(at)) return html`<span class="faint">–</span>`
  return html`<time datetime=${new Date(at).toISOString()} title=${date(at)}>${age(at, now)}${suffix}</time>`
}

/** The most characters of a value that are shown. */
const SHOWN = 20_000
export function Json({ value }) {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2)
  const shown = visible(text.slice(0, SHOWN))
  return html`<pre class="json" dir="ltr">
${shown}${text.length > SHOWN ? `\n… ${text.length - SHOWN} more characters` : ''}</pre>`
}

export function Loading({ error }) {
  return html`<p class="empty" role="status">${error === null ? 'Loading …' : error.message}</p>`
}

export function Empty({ children }) {
  return html`<p class="empty">${children}</p>`
}

/** External text; its direction does not affect the text around it. */
export function Text({ children }) {
  return html`<bdi>${visible([children ?? ''].flat().map(written).join(''))}</bdi>`
}
