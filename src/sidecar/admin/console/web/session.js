import { follow, get } from './api.js'
import { date, written } from './format.js'
import { html } from './html.js'
import { useLive } from './live.js'
import { Age, Badge, Empty, Json, Loading, Text } from './parts.js'
import { href, replaceQuery } from './route.js'
import { asked, groupByTurn } from './timeline.js'
import { Turn } from './turn.js'
import { useMemo, useState } from './vendor/hooks.js'

/** Facts that are shown at first, and added by each click on "Earlier facts". */
const FACTS = 300

/** A session from its newest turn back: facts, callbacks, calls and artifacts of each. */
export function Session({ id, route }) {
  const [limit, setLimit] = useState(FACTS)
  const look = useMemo(() => lookAt(id, limit), [id, limit])
  const { data, error } = useLive(look, `${id} ${limit}`)
  if (data === null) {
    if (error?.status === 404)
      return html`<${Empty}>There is no session <code>${id}</code>. <a href="#/sessions">All sessions</a><//>`
    return html`<${Loading} error=${error} />`
  }
  const { session, facts } = data
  const family = route.query.family ?? ''
  const shown = facts.rows
    .toReversed()
    .filter((fact) => family === '' || (family === 'state') === (fact.data.payload === undefined))
  const groups = groupByTurn(shown).toReversed()
  const byFact = Map.groupBy(data.deliveries.rows, ({ fact_id: fact }) => fact)
  return html`<div class="page session">
    <p class="crumbs"><a href="#/sessions">Sessions</a></p>
    <h1>
      <${Text}>${session.title || 'without a title'}<//>
      <${Badge} word=${session.deleted_at === null ? session.status : 'deleted'} />
    </h1>
    <${Head} session=${session} />
    <div class="filters">
      <h2>Turns, the newest first</h2>
      <select
        data-filter
        aria-label="Facts"
        value=${family}
        onChange=${(event) => replaceQuery({ family: event.target.value })}
      >
        <option value="">all facts</option>
        <option value="state">state only</option>
        <option value="transcript">transcript only</option>
      </select>
    </div>
    ${groups.length === 0 && html`<${Empty}>No facts of this session are stored.<//>`}
    ${groups.map(
      (group, index) =>
        html`<${Turn}
          key=${group.turnId ?? 'none'}
          group=${group}
          resource=${session.turns.find((turn) => turn.id === group.turnId)}
          calls=${session.calls.filter((call) => call.turn_id === group.turnId)}
          actions=${session.required_actions.filter((action) => action.turn_id === group.turnId)}
          deliveries=${byFact}
          wanted=${route.query.fact ?? null}
          open=${index === 0 || group.turnId === route.query.turn || group.facts.some((fact) => fact.id === route.query.fact)}
        />`,
    )}
    ${facts.hasMore && html`<p><button onClick=${() => setLimit(limit + FACTS)}>Earlier facts</button> <span class="faint">the newest ${facts.rows.length} are shown</span></p>`}
    <details>
      <summary>The session as the service sent it</summary>
      <${Json} value=${session.resource} />
    </details>
  </div>`
}

/**
 * @returns a function that reads the session, and returns the same object while nothing changed.
 */
function lookAt(id, limit) {
  const readFacts = follow('api/events', { session_id: id }, limit)
  const readDeliveries = follow(
    'api/deliveries',
    { session_id: id },
    limit,
    ({ status }) => status === 'pending',
  )
  let last = null
  return async () => {
    const [session, facts, deliveries] = await Promise.all([
      get(`api/sessions/${encodeURIComponent(id)}`),
      readFacts(),
      readDeliveries(),
    ])
    const same = last?.session === session && last.facts === facts && last.deliveries === deliveries
    if (!same) last = { session, facts, deliveries }
    return last
  }
}

function Head({ session }) {
  const metadata = Object.entries(session.metadata)
  return html`<dl class="facts session-head">
    <dt>Id</dt>
    <dd><code>${session.id}</code></dd>
    <dt>Changed</dt>
    <dd>${date(session.updated_at)}, <${Age} at=${session.updated_at} /> ago</dd>
    <dt>Read by the sidecar</dt>
    <dd><${Age} at=${session.read_at} suffix=" ago" /></dd>
    ${
      metadata.length > 0 &&
      html`<dt>Metadata</dt>
        <dd>
          ${metadata.map(([key, value]) => html`<span class="tag"><${Text}>${key}: ${value}<//></span> `)}
        </dd>`
    }
    ${
      session.required_actions.length > 0 &&
      html`<dt>Waits for</dt>
        <dd>
          ${session.required_actions.map(
            (action) =>
              html`<p class="waits">
                <${Badge} word=${written(action.type)} /> <${Text}>${asked(action)}<//>${' for '}<${Age}
                  at=${action.created_at}
                />
              </p>`,
          )}
          <a href=${href(['actions'])}>Needs action</a>
        </dd>`
    }
  </dl>`
}
