import { written } from './format.js'
import { html } from './html.js'
import { Age, Badge, Empty, Loading, Text } from './parts.js'
import { href, replaceQuery } from './route.js'
import { useRows } from './rows.js'
import { useEffect, useRef } from './vendor/hooks.js'
import { Window } from './window.js'

const STATUSES = ['working', 'requires_action', 'idle', 'failed', 'deleted']
/** Milliseconds after the last key until the filter is applied. */
const TYPED = 250

export function Sessions({ route }) {
  const { status = '', text = '' } = route.query
  const list = useRows('api/sessions', { status, text }, ({ id }) => id)
  return html`<div class="list-page">
    <div class="filters">
      <h1>Sessions</h1>
      <${TextFilter}
        value=${text}
        label="Title contains, or id"
        onText=${(value) => replaceQuery({ text: value })}
      />
      <select
        aria-label="Status"
        value=${status}
        onChange=${(event) => replaceQuery({ status: event.target.value })}
      >
        <option value="">all statuses</option>
        ${STATUSES.map((word) => html`<option key=${word} value=${word}>${word.replaceAll('_', ' ')}</option>`)}
      </select>
      <span class="faint" role="status">${list.rows.length}${list.hasMore ? '+' : ''} shown</span>
    </div>
    ${list.error !== null && html`<p class="fault">${list.error.message}</p>`}
    ${
      list.rows.length > 0
        ? html`<${Window}
            key=${status + text}
            list=${list}
            idOf=${({ id }) => id}
            draw=${drawSession}
            label="Sessions"
          />`
        : list.loaded
          ? html`<${Empty}>${status + text === '' ? 'No session is known yet.' : 'No session matches.'}<//>`
          : html`<${Loading} error=${list.error} />`
    }
  </div>`
}

function drawSession(session) {
  return html`<a data-item class="cells session-cells" href=${href(['sessions', session.id])}>
    <span class="cell-main"><${Text}>${session.title || 'without a title'}<//></span>
    <span class="cell-id">${session.id}</span>
    <span class="cell-extra"
      >${session.deleted_at === null && session.required_actions.length > 0 && html`<span class="why">${waits(session.required_actions)}</span>`}</span
    >
    <span class="cell-badge"
      ><${Badge} word=${session.deleted_at === null ? session.status : 'deleted'}
    /></span>
    <span class="cell-age"><${Age} at=${session.updated_at} suffix=" ago" /></span>
  </a>`
}

function waits(actions) {
  return `waits for ${actions.map(({ type, name }) => (type === 'function_call' ? written(name) : written(type))).join(', ')}`
}

function TextFilter({ value, label, onText }) {
  const timer = useRef(null)
  const field = useRef(null)
  // A link may change the filter in the address; it must not change the text that is being typed.
  useEffect(() => {
    if (field.current !== document.activeElement) field.current.value = value
  }, [value])
  const typed = (event) => {
    const text = event.target.value.trim()
    clearTimeout(timer.current)
    timer.current = setTimeout(() => onText(text), TYPED)
  }
  return html`<input
    type="search"
    data-filter
    ref=${field}
    placeholder=${label}
    aria-label=${label}
    onInput=${typed}
    maxlength="256"
  />`
}
