import { forgetAnswers, post } from './api.js'
import { setConnection } from './connection.js'
import { html } from './html.js'
import { useEffect, useRef, useState } from './vendor/hooks.js'

/**
 * The token is sent in one request and not stored: only a cookie is stored, which no script can
 * read.
 */
export function Login() {
  const [fault, setFault] = useState(null)
  const [busy, setBusy] = useState(false)
  const field = useRef(null)
  useEffect(() => field.current?.focus(), [])
  const submit = async (event) => {
    event.preventDefault()
    setBusy(true)
    try {
      await post('console/login', { token: field.current.value.trim() })
      forgetAnswers()
      setConnection('unknown')
    } catch (error) {
      setFault(error.message)
      setBusy(false)
      field.current?.select()
    }
  }
  return html`<form class="login" onSubmit=${submit}>
    <h1>Session sidecar</h1>
    <p>
      Sign in with the admin token (<code>admin.token</code> of the configuration). A login ends after twelve
      hours, when the token changes, and when the sidecar restarts. Then sign in again; you return to this
      page.
    </p>
    <label for="token">Admin token</label>
    <input
      id="token"
      ref=${field}
      type="password"
      autocomplete="current-password"
      spellcheck="false"
      required
    />
    ${fault !== null && html`<p class="fault" role="alert">${fault}</p>`}
    <button disabled=${busy}>Sign in</button>
  </form>`
}
