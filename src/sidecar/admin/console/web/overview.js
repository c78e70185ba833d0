import { get } from './api.js'
import { count, date, duration } from './format.js'
import { html } from './html.js'
import { useLive } from './live.js'
import { Age, Badge, Empty, Loading, Text } from './parts.js'
import { href } from './route.js'

const CHANNELS = [
  ['stream', 'Stream'],
  ['webhook', 'Webhooks'],
  ['poll', 'Polling'],
]

export function Overview() {
  const { data, error } = useLive(async () => {
    const [status, attention, turns] = await Promise.all([
      get('api/status'),
      get('api/attention'),
      get('api/turns', { limit: 10 }),
    ])
    return { status, needs: attention.data, turns }
  }, 'overview')
  if (data === null) return html`<${Loading} error=${error} />`
  const { status } = data
  return html`<div class="page overview">
    <${Now} list=${data.needs} />
    <${OpenTurns} page=${data.turns} />
    <section class="wide">
      <h2>Channels</h2>
      <div class="cards">
        ${CHANNELS.map(([name, label]) => html`<${Channel} key=${name} label=${label} channel=${status.channels[name]} />`)}
      </div>
    </section>
    <${Throughput} minutes=${status.throughput} />
    <section>
      <h2>Queues</h2>
      <dl class="facts">
        <dt>Callbacks pending</dt>
        <dd>
          <a href=${href(['deliveries'], { status: 'pending' })}>${status.queues.deliveries_pending}</a>
        </dd>
        <dt>Dead letters</dt>
        <dd><a href=${href(['deliveries'], { status: 'dead' })}>${status.queues.deliveries_dead}</a></dd>
        <dt>Function calls open</dt>
        <dd>${status.queues.calls_open}</dd>
        <dt>Sessions to read</dt>
        <dd>${status.queues.sessions_to_read}</dd>
        <dt>Session slots used</dt>
        <dd>${status.slots.used}${status.slots.limit === null ? '' : ` of ${status.slots.limit}`}</dd>
      </dl>
    </section>
    <section>
      <h2>Service</h2>
      <dl class="facts">
        <dt>Address</dt>
        <dd><${Text}>${status.service.base_url}<//></dd>
        <dt>Token</dt>
        <dd><${Badge} word=${status.token.state} /></dd>
        <dt>Token expires</dt>
        <dd>${status.token.expires_at === null ? 'unknown' : date(status.token.expires_at)}</dd>
        <dt>Sidecar</dt>
        <dd>
          ${status.version}, up <${Age} at=${status.started_at} />${status.leader ? '' : ', not leading'}
        </dd>
      </dl>
    </section>
    ${status.replicas.length > 0 && html`<${Replicas} list=${status.replicas} />`}
  </div>`
}

function Replicas({ list }) {
  return html`<section aria-label="Replicas">
    <h2>Replicas</h2>
    <dl class="facts">
      ${list.map(
        ({ id, name, version, self, leader, shards, epoch, started_at }) =>
          html`<dt key=${id}><${Text}>${name || id}<//></dt>
            <dd>
              ${shards}
              shards${epoch !== null && `, epoch ${epoch}`}${leader && ', leads'}${self && ', this one'},
              ${version}, up
              <${Age} at=${started_at} />
            </dd>`,
      )}
    </dl>
  </section>`
}

function Now({ list }) {
  return html`<section class="wide" aria-label="Needs action now">
    <h2>Needs action now</h2>
    ${
      list.length === 0
        ? html`<p class="all-well">
            <${Badge} word="nothing" tone="good" /> All channels, handlers and queues work.
          </p>`
        : html`<ul class="needs">
            ${list.map(
              ({ id, tone, what, since, detail, advice, page }) =>
                html`<li key=${id} class=${tone}>
                  <a data-item href=${page}
                    ><strong><${Text}>${what}<//></strong></a
                  >${since !== null && html` <span class="faint">for <${Age} at=${since} /></span>`}
                  ${detail !== null && html`<p class="faint"><${Text}>${detail}<//></p>`}
                  <p>→ <${Text}>${advice}<//></p>
                </li>`,
            )}
          </ul>`
    }
  </section>`
}

function OpenTurns({ page }) {
  return html`<section class="wide" aria-label="Turns under way">
    <h2>Turns under way, the oldest first</h2>
    ${
      page.data.length === 0
        ? html`<${Empty}>No turn is under way.<//>`
        : html`<ul class="entries">
            ${page.data.map(
              (turn) =>
                html`<li key=${turn.id}>
                  <a data-item href=${href(['sessions', turn.session_id], { turn: turn.id })}>
                    <span class="age"><${Age} at=${turn.created_at} /></span>
                    <span class="grow"><${Text}>${turn.session_title || turn.session_id}<//></span>
                    <span class=${turn.waits_for.length > 0 ? 'why' : 'faint'}>${whyOf(turn)}</span>
                    <${Badge} word=${turn.status} />
                  </a>
                </li>`,
            )}
          </ul>`
    }
    ${page.has_more && html`<p class="faint">Only the ten oldest are shown. <a href=${href(['sessions'], { status: 'working' })}>All working sessions</a></p>`}
  </section>`
}

function whyOf({ waits_for, status, artifacts }) {
  if (waits_for.length > 0) {
    return waits_for
      .map(({ type, name }) =>
        type === 'function_call' ? `waits for ${name}` : `waits for a person: ${type}`,
      )
      .join(', ')
  }
  return status === 'working' ? 'the agent works' : `artifacts ${artifacts ?? 'not reported yet'}`
}

function Channel({ label, channel }) {
  return html`<article class="card">
    <h3>
      ${label} <${Badge} word=${channel.state} tone=${channel.state === 'waiting' ? 'bad' : undefined} />
    </h3>
    <dl class="facts">
      <dt>Last change</dt>
      <dd><${Age} at=${channel.since} suffix=" ago" /></dd>
      <dt>Last report</dt>
      <dd><${Age} at=${channel.last_event_at} suffix=" ago" /></dd>
      <dt>Lag</dt>
      <dd>${channel.lag_seconds === null ? '–' : duration(channel.lag_seconds * 1000)}</dd>
      ${
        channel.last_seq !== null &&
        html`<dt>Last seq</dt>
          <dd>${channel.last_seq}</dd>`
      }
    </dl>
    ${channel.last_error !== null && html`<p class="fault"><${Text}>${channel.last_error}<//></p>`}
  </article>`
}

const BARS = 60

function Throughput({ minutes }) {
  const shown = minutes.slice(-BARS)
  const most = Math.max(1, ...shown.map(({ facts }) => facts))
  const sum = (name) => shown.reduce((total, minute) => total + minute[name], 0)
  return html`<section>
    <h2>Last ${shown.length === 1 ? 'minute' : count(shown.length, 'minute')}</h2>
    <svg
      class="bars"
      viewBox=${`0 0 ${BARS * 4} 40`}
      preserveAspectRatio="none"
      role="img"
      aria-label=${`Facts a minute, the highest ${most}`}
    >
      ${shown.map(({ at, facts }, index) => {
        const height = facts === 0 ? 0.5 : Math.max(1.5, (facts / most) * 40)
        return html`<rect
          key=${at}
          x=${(BARS - shown.length + index) * 4}
          y=${40 - height}
          width="3"
          height=${height}
        />`
      })}
    </svg>
    <dl class="facts">
      <dt>Facts</dt>
      <dd>${sum('facts')} <span class="faint">(highest: ${most} a minute)</span></dd>
      <dt>Callbacks delivered</dt>
      <dd>${sum('delivered')}</dd>
      <dt>Failed attempts</dt>
      <dd>${sum('failed')}</dd>
      <dt>Function calls ended</dt>
      <dd>${sum('calls')}</dd>
    </dl>
  </section>`
}
