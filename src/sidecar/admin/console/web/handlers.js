import { get, post } from './api.js'
import { duration } from './format.js'
import { html } from './html.js'
import { useLive } from './live.js'
import { Age, Badge, Empty, Json, Loading, Text } from './parts.js'
import { href } from './route.js'
import { useState } from './vendor/hooks.js'

/** Number of calls from which the health of the tools is derived. */
const CALLS = 100

export function Handlers() {
  const { data, error, again } = useLive(async () => {
    const [handlers, tools, calls, { paths }] = await Promise.all([
      get('api/handlers', { limit: 100 }),
      get('api/tools', { limit: 100 }),
      get('api/calls', { limit: CALLS }),
      get('openapi.json'),
    ])
    const canTest = Object.hasOwn(paths, '/api/handlers/{name}/test')
    return { handlers: handlers.data, tools: tools.data, calls: calls.data, canTest }
  }, 'handlers')
  if (data === null) return html`<${Loading} error=${error} />`
  return html`<div class="page">
    <h1>Handlers and tools</h1>
    <h2>Handlers</h2>
    ${data.handlers.length === 0 && html`<${Empty}>No handler is configured: add one to <code>handlers</code>.<//>`}
    <div class="cards">
      ${data.handlers.map((handler) => html`<${Handler} key=${handler.name} handler=${handler} canTest=${data.canTest} again=${again} />`)}
    </div>
    <h2>Tools</h2>
    ${data.tools.length === 0 && html`<${Empty}>No tool is configured: add one to <code>tools</code>.<//>`}
    <div class="cards">
      ${data.tools.map((tool) => html`<${Tool} key=${tool.name} tool=${tool} calls=${data.calls.filter(({ name }) => name === tool.name)} />`)}
    </div>
  </div>`
}

function Handler({ handler, canTest, again }) {
  const { name, state, since, pending, dead } = handler
  const [result, setResult] = useState(null)
  const act = async (action, say) => {
    try {
      setResult({ text: say(await post(`api/handlers/${encodeURIComponent(name)}/${action}`)) })
    } catch (error) {
      setResult({ text: error.message, bad: true })
    }
    again()
  }
  const change = state === 'paused' ? 'resume' : 'pause'
  return html`<article class="card" aria-label=${`Handler ${name}`}>
    <h3>
      <a data-item href=${href(['deliveries'], { handler: name })}><${Text}>${name}<//></a>
      <${Badge} word=${state} />
    </h3>
    <dl class="facts">
      <dt>Last change</dt>
      <dd><${Age} at=${since} suffix=" ago" /></dd>
      <dt>Backlog</dt>
      <dd>
        <a href=${href(['deliveries'], { handler: name, status: 'pending' })}>${pending}</a
        >${handler.oldest_pending_at !== null && html`, the oldest <${Age} at=${handler.oldest_pending_at} />`}
      </dd>
      <dt>Dead letters</dt>
      <dd><a href=${href(['deliveries'], { handler: name, status: 'dead' })}>${dead}</a></dd>
    </dl>
    ${handler.last_error !== null && html`<p class=${state === 'paused' ? 'faint' : 'fault'}><${Text}>${handler.last_error}<//></p>`}
    ${
      state !== 'removed' &&
      html`<p class="buttons">
        <button onClick=${() => act(change, () => `${change === 'pause' ? 'Paused' : 'Resumed'}.`)}>
          ${change === 'pause' ? 'Pause' : 'Resume'}
        </button>
        ${canTest && html`<button onClick=${() => act('test', answerOf)}>Send a test</button>`}
      </p>`
    }
    ${result !== null && html`<p class=${result.bad ? 'fault' : 'result'} role="status"><${Text}>${result.text}<//></p>`}
  </article>`
}

/** The outcome of a test fact at a handler. */
function answerOf({ type, outcome, status, error, answer: body, ms }) {
  const answer = [status === null ? null : `it answered ${status}`, error]
    .filter((part) => part !== null)
    .join(', ')
  return `test of ${type}: ${outcome}${answer === '' ? '' : `, ${answer}`}, in ${duration(ms)}.${body ? ` Its response: ${body}` : ''}`
}

function Tool({ tool, calls }) {
  const failed = calls.filter(({ state }) => state === 'failed' || state === 'not_delivered').length
  const fixed = calls.filter(({ state, answer }) => state === 'answered' && answer === 'error').length
  const open = calls.filter(({ ended_at: ended }) => ended === null)
  const [last] = calls
  return html`<article class="card" aria-label=${`Tool ${tool.name}`}>
    <h3><${Text}>${tool.name}<//> ${last !== undefined && html`<${Badge} word=${last.state} />`}</h3>
    <p class="faint"><${Text}>${tool.description ?? ''}<//></p>
    <dl class="facts">
      <dt>Calls</dt>
      <dd>${calls.length} <span class="faint">among the last ${CALLS} calls</span></dd>
      <dt>Answered with the error text</dt>
      <dd>${fixed}</dd>
      <dt>Not answered</dt>
      <dd>${failed}</dd>
      <dt>Open</dt>
      <dd>${open.length}</dd>
      <dt>Last run took</dt>
      <dd>
        ${last?.finished_at == null || last.started_at === null ? '–' : duration(last.finished_at - last.started_at)}
      </dd>
      <dt>Last call</dt>
      <dd><${Age} at=${last?.received_at} suffix=" ago" /></dd>
    </dl>
    ${last !== undefined && last.error !== null && html`<p class="fault"><${Text}>${last.error}<//></p>`}
    ${last !== undefined && html`<p><a data-item href=${href(['sessions', last.session_id], { turn: last.turn_id ?? '' })}>Show the last call</a></p>`}
    <details>
      <summary>Parameters</summary>
      <${Json} value=${tool.parameters ?? null} />
    </details>
  </article>`
}
