import { get } from './api.js'
import { date, plain } from './format.js'
import { html } from './html.js'
import { useLive } from './live.js'
import { Age, Badge, Empty, Json, Loading, Text } from './parts.js'
import { href } from './route.js'
import { asked } from './timeline.js'

/** The placeholder for a session's id in the address of the Console. */
const PLACE = '{session_id}'

/** Actions that wait for a person, who answers them in the service's own Console, never here. */
export function Actions() {
  const { data, error } = useLive(async () => {
    const [actions, status] = await Promise.all([get('api/actions', { limit: 100 }), get('api/status')])
    return { actions, service: status.service.console_url ?? status.service.base_url }
  }, 'actions')
  if (data === null) return html`<${Loading} error=${error} />`
  const people = data.actions.data.filter(({ type }) => type !== 'function_call')
  const calls = data.actions.data.filter(({ type }) => type === 'function_call')
  const { service } = data
  const linkTo = (id) =>
    service.includes(PLACE) ? webAddress(service.replaceAll(PLACE, encodeURIComponent(id))) : undefined
  const front = service.includes(PLACE)
    ? service.slice(0, service.indexOf(PLACE)).replace(/[^/]*$/, '')
    : service
  return html`<div class="page">
    <h1>Needs action</h1>
    <p class="faint">
      Approvals and questions are for a person in the Console of the service${' '} (<a
        href=${webAddress(front)}
        target="_blank"
        rel="noreferrer noopener"
        ><${Text}>${front}<//></a
      >)${service === front && ': find the session there by its id'}. Nothing is answered from here.
    </p>
    <section aria-label="For a person">
      <h2>For a person <span class="faint">${people.length}</span></h2>
      ${people.length === 0 ? html`<${Empty}>No action waits for a person.<//>` : people.map((action) => html`<${Action} key=${action.call_id} action=${action} link=${linkTo(action.session_id)} />`)}
    </section>
    <section aria-label="Function calls">
      <h2>Function calls <span class="faint">${calls.length}</span></h2>
      ${calls.length === 0 ? html`<${Empty}>No function call is open.<//>` : calls.map((action) => html`<${Action} key=${action.call_id} action=${action} />`)}
    </section>
    ${data.actions.has_more && html`<p class="faint">Only the hundred oldest are shown.</p>`}
  </div>`
}

function Action({ action, link }) {
  const asks = plain(asked(action.action))
  return html`<article class="card action">
    <p class="action-head">
      <${Badge} word=${action.type} tone=${action.type === 'function_call' ? 'busy' : 'warn'} />
      <a class="grow" data-item href=${href(['sessions', action.session_id], { turn: action.turn_id ?? '' })}
        ><${Text}>${action.session_title || action.session_id}<//></a
      >
      ${link && html`<a href=${link} target="_blank" rel="noreferrer noopener">answer in the Console</a>`}
      <span
        >waits <strong><${Age} at=${action.created_at ?? action.opened_at} /></strong
      ></span>
    </p>
    ${asks !== '' && html`<p><bdi>${asks}</bdi></p>`}
    ${action.advice !== null && html`<p class="why"><${Text}>${action.advice}<//></p>`}
    <p class="faint">
      ${'in session '}<code>${action.session_id}</code>${action.expires_at !== null && `, ends ${date(action.expires_at)}`}
    </p>
    <details>
      <summary>The action as the service sent it</summary>
      <${Json} value=${action.action} />
    </details>
  </article>`
}

/** Only a web address becomes a link. */
function webAddress(text) {
  return /^https?:\/\//.test(text) ? text : undefined
}
