import { useConnection } from './connection.js'
import { html } from './html.js'
import { Age } from './parts.js'

/** What is wrong with the page itself, and what becomes of it. */
export function Banner() {
  const { kind, since, upgraded } = useConnection()
  if (kind === 'away') {
    return html`<p class="banner bad" role="alert">
      The sidecar has not answered for <${Age} at=${since} />. What you see is from before. It is asked again
      and again; this goes away by itself once it answers.
    </p>`
  }
  if (!upgraded) return null
  return html`<p class="banner warn" role="alert">
    The sidecar runs another version by now.
    <button onClick=${() => location.reload()}>Load its console</button>
  </p>`
}
