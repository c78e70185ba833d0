import { count, span } from '../text.ts'
import type { OwnApp } from './own-app.ts'
import type { ToolRunReport } from '../../core/observer.ts'
import type { CallbackDone, RunFailed } from './record.ts'

/** Why the user's app did not accept a request, and how to fix it. */
export interface Advice {
  cause: string
  fix: string
}

/** null if the printed line says enough. `address`: the option `--url` of a command; empty at the usual port. */
export function adviceOn(record: CallbackDone | RunFailed, app: OwnApp, address: string): Advice | null {
  const { status, error } = answerOf(record)
  const tool = record.kind === 'run' ? record.report.tool : null
  const url = tool === null ? app.url : (app.tools[tool] ?? app.tools['*'] ?? '').replace('{name}', tool)
  if (status === null) return withoutAnswer(url, error ?? '')
  if (status === 401 || status === 403)
    return {
      cause: `your app refuses the signature (${status})`,
      fix: `give it the secret in ${app.secretFile}, and verify the raw body, before it is parsed`,
    }
  if (status === 404 || status === 405)
    return {
      cause: `your app has no route POST ${new URL(url).pathname} (${status})`,
      fix:
        tool === null
          ? 'add the route, or name another one: --forward-to http://localhost:3000/agent-events'
          : `add the route, or name another one: --tool ${tool}=URL`,
    }
  if (status === 410 && tool === null)
    return {
      cause: 'your app answered 410, so it gets no more callbacks',
      fix: `resume them: session-sidecar handlers resume app${address}`,
    }
  if (status >= 300 && status < 400)
    return {
      cause: `${url} is redirected (${status})`,
      fix: 'use the address that its header `location` has: redirects are not followed',
    }
  if (status >= 500)
    return {
      cause: `your app failed (${status})`,
      fix: 'read the output of your app; the request is repeated',
    }
  return null
}

/** What the app answered; `status` is null without an answer. */
export function answerOf(record: CallbackDone | RunFailed): Pick<ToolRunReport, 'status' | 'error'> & {
  outcome: string
} {
  return record.kind === 'run' ? record.report : record
}

function withoutAnswer(url: string, error: string): Advice | null {
  const { origin } = new URL(url)
  if (/ECONNREFUSED/.test(error))
    return {
      cause: `no program listens at ${origin}`,
      fix: 'start your app: pending requests are then sent, in order',
    }
  if (/ENOTFOUND|EAI_AGAIN/.test(error))
    return { cause: `the host of ${origin} is unknown`, fix: 'correct the address in --forward-to or --tool' }
  if (/other side closed|ECONNRESET/.test(error))
    return {
      cause: 'your app closes the connection before it answers',
      fix: 'read the output of your app: it may have failed',
    }
  if (/no answer|timeout/i.test(error))
    return { cause: `${url} gives no answer in time`, fix: 'answer with 2xx first, and work afterwards' }
  return adviceOnTls(`no TLS connection to ${origin}: ${error}`)
}

const TLS = /certificate|SSL|EPROTO|wrong version/i
/** What OpenSSL writes around its reason. */
const OPENSSL = /[0-9A-F]+:error:(?:[^:]*:){3}([^:]*):.*/s

/** null if TLS is not the cause. */
export function adviceOnTls(error: string): Advice | null {
  if (!TLS.test(error)) return null
  return {
    cause: error.replace(OPENSSL, '$1'),
    fix: 'use http:// if the server has no TLS, or trust its authority: NODE_EXTRA_CA_CERTS=ca.pem',
  }
}

/** What happens next with a callback that was not accepted. */
export function nextStep({ outcome, wait, attempt }: CallbackDone): string {
  switch (outcome) {
    case 'delivered':
      return attempt > 1 ? `attempt ${attempt}` : ''
    case 'retry':
      return `attempt ${attempt}, again in ${span(wait ?? 0)} with the same id`
    case 'unreachable':
      return 'sent when the app listens'
    case 'paused':
      return 'paused: the app answered 410'
    case 'dead':
      return `dead letter after ${count(attempt, 'attempt')}`
  }
}
