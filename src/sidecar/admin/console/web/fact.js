import { clock, date, duration, plain } from './format.js'
import { html } from './html.js'
import { Badge, Json, Text } from './parts.js'
import { sightings, summary } from './timeline.js'
import { useEffect, useState } from './vendor/hooks.js'

/**
 * A fact in a line; opened: the sent data, the channels that reported it, and each attempt at each
 * handler.
 */
export function Fact({ fact, deliveries, open }) {
  const [shown, setShown] = useState(open)
  useEffect(() => {
    if (open) setShown(true)
  }, [open])
  const seen = sightings(fact.seen)
  return html`<details
    class="fact"
    open=${shown}
    onToggle=${(event) => event.target === event.currentTarget && setShown(event.target.open)}
  >
    <summary data-item>
      <time title=${date(Date.parse(fact.timestamp))}>${clock(Date.parse(fact.timestamp))}</time>
      <span class=${`type ${fact.data.payload === undefined ? 'state' : ''}`}>${plain(fact.type)}</span>
      <span class="said"><bdi>${plain(summary(fact))}</bdi></span>
      <span class="channel" title="the channel that reported it first">${seen[0]?.channel ?? ''}</span>
      <span class="sent"
        >${deliveries.map((delivery) => html`<${Badge} key=${delivery.id} word=${`${delivery.handler} ${delivery.status}`} tone=${TONE[delivery.status]} />`)}</span
      >
    </summary>
    ${shown && html`<${Inside} fact=${fact} deliveries=${deliveries} seen=${seen} />`}
  </details>`
}

const TONE = { delivered: 'good', pending: 'busy', dead: 'bad' }

function Inside({ fact, deliveries, seen }) {
  return html`<div class="inside">
    <p class="faint">
      <code>${fact.id}</code>${fact.seq !== null && html`, seq ${fact.seq}`}${' '}
      ${seen.length === 0 ? 'made by this sidecar' : seen.map(({ channel, later }, index) => html`<span class="tag">${index === 0 ? `${channel} first` : `${channel} + ${duration(later)}`}</span> `)}
    </p>
    ${deliveries.map((delivery) => html`<${Attempts} key=${delivery.id} delivery=${delivery} />`)}
    <h4>Sent as data</h4>
    <${Json} value=${fact.data} />
  </div>`
}

function Attempts({ delivery }) {
  return html`<div class="scroll">
    <table aria-label=${`Attempts at ${delivery.handler}`}>
      <thead>
        <tr>
          <th>${delivery.handler} <${Badge} word=${delivery.status} /></th>
          <th>Answer</th>
          <th>Duration</th>
        </tr>
      </thead>
      <tbody>
        ${delivery.attempts.map(
          ({ at, status, error, ms }, index) =>
            html`<tr>
              <td>attempt ${index + 1}, ${clock(at)}</td>
              <td>${status ?? ''} <${Text}>${error ?? ''}<//></td>
              <td>${duration(ms)}</td>
            </tr>`,
        )}
        ${
          delivery.attempts.length === 0 &&
          html`<tr>
            <td colspan="3">not tried yet</td>
          </tr>`
        }
      </tbody>
    </table>
    ${
      delivery.last_answer &&
      html`<p class="faint">The last failed response of ${delivery.handler}:</p>
        <${Json} value=${delivery.last_answer} />`
    }
  </div>`
}
