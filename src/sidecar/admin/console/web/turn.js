import { bytes, duration, when, written } from './format.js'
import { html } from './html.js'
import { Fact } from './fact.js'
import { Age, Badge, Text } from './parts.js'
import { useEffect, useRef, useState } from './vendor/hooks.js'

/**
 * One turn: its outcome, then its facts in order. The facts of a collapsed turn are not rendered.
 */
export function Turn({ group, resource, calls, actions, deliveries, wanted, open }) {
  const [shown, setShown] = useState(open)
  useEffect(() => {
    if (open) setShown(true)
  }, [open])
  const { turnId, facts } = group
  const artifacts = artifactsOf(facts)
  return html`<details
    class="turn"
    open=${shown}
    onToggle=${(event) => event.target === event.currentTarget && setShown(event.target.open)}
  >
    <summary data-item>
      <strong>${turnId === null ? 'No turn' : 'Turn'}</strong>
      ${turnId !== null && html`<code>${turnId}</code>`}${' '}
      ${resource !== undefined && html`<${Badge} word=${written(resource.status)} />`}${' '}
      <${Times} turn=${resource} facts=${facts} />${' '}
      ${actions.map((action) => html`<span class="why">waits for ${action.type === 'function_call' ? written(action.name) : `a person: ${action.type}`}, <${Age} at=${action.created_at} /></span> `)}
    </summary>
    ${
      shown &&
      html`<div class="turn-body">
        ${calls.length > 0 && html`<${Calls} calls=${calls} />`}
        ${artifacts.length > 0 && html`<${Artifacts} artifacts=${artifacts} />`}
        <ol class="timeline">
          ${facts.map(
            (fact) =>
              html`<${Wanted} key=${fact.id} wanted=${fact.id === wanted}
                ><${Fact} fact=${fact} deliveries=${deliveries.get(fact.id) ?? []} open=${fact.id === wanted}
              /><//>`,
          )}
        </ol>
      </div>`
    }
  </details>`
}

/** When a link names a fact, the page scrolls to it, once. */
function Wanted({ wanted, children }) {
  const item = useRef(null)
  useEffect(() => {
    if (wanted) item.current?.scrollIntoView({ block: 'center' })
  }, [wanted])
  return html`<li ref=${item} class=${wanted ? 'wanted' : undefined}>${children}</li>`
}

function Times({ turn, facts }) {
  const started = turn?.started_at ?? turn?.created_at
  if (typeof started !== 'number')
    return html`<span class="faint">${when(Date.parse(facts[0].timestamp))}</span>`
  if (typeof turn.completed_at !== 'number') {
    return html`<span
      >${when(started)}, under way for <strong><${Age} at=${started} /></strong
    ></span>`
  }
  return html`<span class="faint">${when(started)}, took ${duration(turn.completed_at - started)}</span>`
}

function Calls({ calls }) {
  return html`<div class="scroll">
    <table aria-label="Tool calls">
      <thead>
        <tr>
          <th>Tool call</th>
          <th>State</th>
          <th>Outcome</th>
          <th>Runs</th>
          <th>Ran</th>
          <th>Answered after</th>
          <th>Error</th>
        </tr>
      </thead>
      <tbody>
        ${calls.map(
          (call) =>
            html`<tr key=${call.call_id}>
              <td title=${call.call_id}><${Text}>${call.name}<//></td>
              <td><${Badge} word=${call.state} tone=${call.error === null ? undefined : 'warn'} /></td>
              <td><${Text}>${call.outcome ?? '–'}<//></td>
              <td>${call.attempts}</td>
              <td>
                ${call.started_at === null ? '–' : call.finished_at === null ? html`<${Age} at=${call.started_at} />` : duration(call.finished_at - call.started_at)}
              </td>
              <td>${call.ended_at === null ? '–' : duration(call.ended_at - call.received_at)}</td>
              <td><${Text}>${call.error ?? ''}<//></td>
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`
}

function Artifacts({ artifacts }) {
  return html`<div class="scroll">
    <table aria-label="Artifacts">
      <thead>
        <tr>
          <th>Artifact</th>
          <th>Type</th>
          <th>Size</th>
        </tr>
      </thead>
      <tbody>
        ${artifacts.map(
          ({ path, content_type: type, size_bytes: size, reason }) =>
            html`<tr>
              <td><${Text}>${path ?? '?'}<//></td>
              <td><${Text}>${reason === undefined ? (type ?? '') : `skipped: ${written(reason)}`}<//></td>
              <td>${typeof size === 'number' ? bytes(size) : ''}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`
}

/** The artifacts in the turn.settled fact. */
function artifactsOf(facts) {
  const data = facts.findLast(({ type }) => type === 'turn.settled')?.data
  return [...(data?.artifacts ?? []), ...(data?.artifacts_skipped ?? [])].filter(
    (artifact) => typeof artifact === 'object' && artifact !== null,
  )
}
