import { useConnection } from './connection.js'
import { html } from './html.js'
import { Age } from './parts.js'

/** Appears on every page when the sidecar does not answer, or was upgraded after the page was loaded. */
export function Banner() {
  const { kind, since, upgraded } = useConnection()
  if (kind === 'unreachable') {
    return html`<p class="banner bad" role="alert">
      The sidecar has not answered for <${Age} at=${since} />. The page shows old data. It retries by itself;
      this message disappears once the sidecar answers.
    </p>`
  }
  if (!upgraded) return null
  return html`<p class="banner warn" role="alert">
    The sidecar now runs another version.
    <button onClick=${() => location.reload()}>Load the new console</button>
  </p>`
}
