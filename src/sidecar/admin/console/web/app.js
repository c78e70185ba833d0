import { Actions } from './actions.js'
import { get, post } from './api.js'
import { Banner } from './banner.js'
import { useConnection } from './connection.js'
import { Deliveries } from './deliveries.js'
import { Handlers } from './handlers.js'
import { html } from './html.js'
import { KEYS, useKeys } from './keys.js'
import { Login } from './login.js'
import { Overview } from './overview.js'
import { Empty } from './parts.js'
import { href, useRoute } from './route.js'
import { Session } from './session.js'
import { Sessions } from './sessions.js'
import { useEffect, useRef, useState } from './vendor/hooks.js'
import { render } from './vendor/preact.js'

const PAGES = [
  ['', 'Overview', Overview],
  ['sessions', 'Sessions', Sessions],
  ['actions', 'Needs action', Actions],
  ['deliveries', 'Deliveries', Deliveries],
  ['handlers', 'Handlers', Handlers],
]

function App() {
  const route = useRoute()
  const { kind } = useConnection()
  const help = useRef(null)
  const [tokenWanted, setTokenWanted] = useState(false)
  useEffect(() => {
    get('console/login').then(
      ({ token_wanted }) => setTokenWanted(token_wanted),
      () => {},
    )
  }, [kind])
  const [name = ''] = route.parts
  useKeys({ onHelp: () => help.current?.showModal(), onEscape: () => leave(route) })
  const [, title, Page] = PAGES.find(([path]) => path === name) ?? []
  useEffect(() => {
    document.title = `${String(title ?? 'Nothing here')} · Session sidecar`
  }, [title])

  if (kind === 'signed_out') return html`<${Login} />`
  return html`<header>
      <a class="brand" href="#/">Session sidecar</a>
      <nav aria-label="Pages">
        ${PAGES.map(
          ([path, label]) =>
            html`<a
              key=${path}
              href=${path === '' ? '#/' : href([path])}
              aria-current=${path === name ? 'page' : undefined}
              >${label}</a
            >`,
        )}
      </nav>
      <span class="tools">
        <button class="quiet" title="Keys" aria-label="Keys" onClick=${() => help.current?.showModal()}>
          ?
        </button>
        ${tokenWanted && html`<button class="quiet" onClick=${signOut}>Sign out</button>`}
      </span>
    </header>
    <${Banner} />
    <main>
      ${
        name === 'sessions' && route.parts.length > 1
          ? html`<${Session} key=${route.parts[1]} id=${route.parts[1]} route=${route} />`
          : Page === undefined
            ? html`<${Empty}>There is no such page. <a href="#/">To the overview</a><//>`
            : html`<${Page} route=${route} />`
      }
    </main>
    <dialog ref=${help} aria-label="Keys">
      <h2>Keys</h2>
      <dl class="keys">
        ${KEYS.map(
          ([key, what]) =>
            html`<dt>${key}</dt>
              <dd>${what}</dd>`,
        )}
      </dl>
      <form method="dialog"><button>Close</button></form>
    </dialog>`
}

/** Leads one level up, for example from a session to the list of sessions. */
function leave({ parts }) {
  if (parts.length > 0) location.hash = href(parts.slice(0, -1))
}

async function signOut() {
  await post('console/logout').catch(() => {})
  // A reload clears the page.
  location.reload()
}

render(html`<${App} />`, document.querySelector('#app'))
