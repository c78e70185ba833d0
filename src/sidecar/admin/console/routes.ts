import type { IncomingMessage } from 'node:http'
import { isObject, stringOf } from '../../../std/json.ts'
import { Problem } from '../problem.ts'
import { ok, type Answer } from '../route.ts'
import type { Served } from '../router.ts'
import { readAssets, type Assets } from './assets.ts'
import { readCookie, writeCookie } from './cookie.ts'
import { LOGIN_TIME, type Logins } from './logins.ts'

/** A header that a form or link of another page cannot send. */
const CONSOLE_HEADER = 'x-sidecar-console'

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'self'",
].join('; ')

/** The routes of login, logout and login state. */
export const LOGIN = '/console/login'

/** Bytes of a body without a login. */
const BODY = 4 * 1024

/** Whether `path` belongs to the console: files without a secret, and the routes of a login. */
export function isConsolePath(path: string): boolean {
  return path === '/' || path.startsWith('/console/')
}

/** The login of the browser that sent `request`. */
export function loginOf(request: IncomingMessage): string | null {
  return readCookie(request.headers.cookie, request.socket.localPort ?? 0)
}

interface ConsoleDoor {
  token: () => string | null
  logins: Logins
  /** Compares the token of a request with the admin token. @throws {Problem} 429 when too many wrong ones come. */
  isRight: (request: IncomingMessage, token: string, given: string) => boolean
}

/** The console: its files, and the exchange of the admin token for a cookie that no script can read. */
export function consoleRoutes({ token, logins, isRight }: ConsoleDoor): Served[] {
  let assets: Assets | null = null
  const send = (request: IncomingMessage, path: string): Answer => {
    assets ??= readAssets()
    const kept = path.startsWith(`${assets.edition}/`)
    const name = kept ? path.slice(assets.edition.length + 1) : path
    const asset = assets.files.get(name)
    if (asset === undefined) throw new Problem('not_found', 'the console has no such file')
    const headers = {
      'cache-control': kept ? 'max-age=31536000, immutable' : 'no-cache',
      'content-security-policy': POLICY,
      etag: asset.etag,
      ...(name === 'index.html' ? { link: preloads(assets) } : {}),
    }
    if (request.headers['if-none-match'] === asset.etag) return { status: 304, body: '', headers }
    return { status: 200, body: asset.body, contentType: asset.type, headers }
  }

  return [
    { method: 'GET', path: '/', answer: (request) => send(request, 'index.html') },
    { method: 'GET', path: '/console/{*}', answer: (request, _body, { rest = '' }) => send(request, rest) },
    {
      method: 'GET',
      path: LOGIN,
      answer(request) {
        const wanted = token()
        const expiry = wanted === null ? null : logins.expiryOf(loginOf(request), wanted)
        return ok({ token_wanted: wanted !== null, expires_at: expiry })
      },
    },
    {
      method: 'POST',
      path: LOGIN,
      bodyLimit: BODY,
      answer(request, body) {
        refuseForms(request)
        const wanted = token()
        if (wanted === null)
          throw new Problem('conflict', 'no admin token is configured, so no login is needed')
        const given = isObject(body) ? stringOf(body['token']) : null
        if (given === null || !isRight(request, wanted, given)) {
          throw new Problem('unauthorized', 'this is not the admin token (admin.token in the configuration)')
        }
        const { id, expiresAt } = logins.open(wanted)
        const headers = { 'set-cookie': cookieFor(request, id) }
        return { ...ok({ token_wanted: true, expires_at: expiresAt }), headers }
      },
    },
    {
      method: 'POST',
      path: '/console/logout',
      bodyLimit: BODY,
      answer(request) {
        refuseForms(request)
        logins.close(loginOf(request))
        return { status: 204, body: '', headers: { 'set-cookie': cookieFor(request, '') } }
      },
    },
  ]
}

/** @throws {Problem} when another page may have made the browser send `request`. */
export function refuseForms({ headers }: IncomingMessage): void {
  if (headers[CONSOLE_HEADER] === undefined) {
    throw new Problem('forbidden', `a request with the console's cookie has the header ${CONSOLE_HEADER}`)
  }
}

function cookieFor(request: IncomingMessage, id: string): string {
  const secure = request.headers['x-forwarded-proto'] === 'https'
  const maxAge = id === '' ? 0 : LOGIN_TIME / 1000
  return writeCookie(id, request.socket.localPort ?? 0, maxAge, secure)
}

/** All modules are requested at once instead of one import after the other. */
function preloads({ files, edition }: Assets): string {
  return [...files.keys()]
    .filter((name) => name.endsWith('.js'))
    .map((name) => `<console/${edition}/${name}>; rel=modulepreload`)
    .join(', ')
}
