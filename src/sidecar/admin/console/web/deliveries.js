import { get, post } from './api.js'
import { BulkRetry } from './bulk-retry.js'
import { count } from './format.js'
import { html } from './html.js'
import { useLive } from './live.js'
import { Age, Badge, Empty, Loading, Text } from './parts.js'
import { href, replaceQuery } from './route.js'
import { useRows } from './rows.js'
import { useState } from './vendor/hooks.js'
import { Window } from './window.js'

const STATUSES = ['pending', 'delivered', 'dead']

export function Deliveries({ route }) {
  const { status = '', handler = '' } = route.query
  const list = useRows('api/deliveries', { status, handler }, ({ id }) => id)
  const handlers = useLive(() => get('api/handlers', { limit: 100 }), 'handlers').data?.data ?? []
  const [result, setResult] = useState(null)
  const retry = async (delivery) => {
    try {
      await post(`api/deliveries/${delivery.id}/retry`)
      setResult({ text: `${delivery.type} will be sent to ${delivery.handler} again.` })
      await list.again()
    } catch (error) {
      setResult({ text: error.message, bad: true })
    }
  }
  return html`<div class="list-page">
    <div class="filters">
      <h1>Deliveries</h1>
      <select
        data-filter
        aria-label="Status"
        value=${status}
        onChange=${(event) => replaceQuery({ status: event.target.value })}
      >
        <option value="">all statuses</option>
        ${STATUSES.map((word) => html`<option key=${word} value=${word}>${word}</option>`)}
      </select>
      <select
        aria-label="Handler"
        value=${handler}
        onChange=${(event) => replaceQuery({ handler: event.target.value })}
      >
        <option value="">all handlers</option>
        ${handlers.map(({ name }) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select>
      <${BulkRetry}
        handler=${handler}
        onDone=${(n) => (setResult({ text: `${count(n, 'dead letter')} will be sent again.` }), list.again())}
      />
      <span class="faint" role="status">${list.rows.length}${list.hasMore ? '+' : ''} shown</span>
    </div>
    ${result !== null && html`<p class=${result.bad ? 'fault' : 'result'} role="status">${result.text}</p>`}
    ${list.error !== null && html`<p class="fault">${list.error.message}</p>`}
    ${
      list.rows.length > 0
        ? html`<${Window}
            key=${status + handler}
            list=${list}
            idOf=${({ id }) => id}
            draw=${(row) => html`<${Delivery} delivery=${row} onRetry=${retry} />`}
            label="Deliveries"
          />`
        : list.loaded
          ? html`<${Empty}>${status === 'dead' ? 'No dead letters.' : 'No delivery matches.'}<//>`
          : html`<${Loading} error=${list.error} />`
    }
  </div>`
}

function Delivery({ delivery, onRetry }) {
  const last = delivery.attempts.at(-1)
  const link =
    delivery.session_id === null
      ? undefined
      : href(['sessions', delivery.session_id], { fact: delivery.fact_id })
  return html`<div class="cells delivery-cells">
    <a data-item class="cell-main" href=${link} tabindex="0"><${Text}>${delivery.type}<//></a>
    <span class="cell-id">${delivery.handler}</span>
    <span class="cell-extra"><span class="narrow">${delivery.handler}, </span>${answerIn(delivery)}</span>
    <span class="cell-badge"><${Badge} word=${delivery.status} /></span>
    <span class="cell-age">${last === undefined ? '–' : html`<${Age} at=${last.at} suffix=" ago" />`}</span>
    <span class="cell-do"
      >${delivery.status !== 'pending' && html`<button onClick=${() => onRetry(delivery)}>Retry</button>`}</span
    >
  </div>`
}

/**
 * The number of attempts and the last outcome; while the delivery is pending or dead also the
 * response of the handler.
 */
function answerIn({ attempts, status, last_answer: words }) {
  const last = attempts.at(-1)
  if (last === undefined) return 'not tried yet'
  const answer = [last.status, last.error, status === 'delivered' ? null : words]
    .filter((part) => part !== undefined && part !== null)
    .join(', ')
  return html`${count(attempts.length, 'attempt')}: <${Text}>${answer}<//>`
}
