import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isObject, stringOf } from '../../../std/json.ts'
import { Problem } from '../problem.ts'
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
export function loginOf(request: FastifyRequest): string | null {
  return readCookie(request.headers.cookie, request.socket.localPort ?? 0)
}

interface ConsoleDoor {
  token: () => string | null
  logins: Logins
  /** Compares the token of a request with the admin token. @throws {Problem} 429 when too many wrong ones come. */
  isRight: (request: FastifyRequest, token: string, given: string) => boolean
}

/** The console: its files, and the exchange of the admin token for a cookie that no script can read. */
export function addConsole(app: FastifyInstance, { token, logins, isRight }: ConsoleDoor): void {
  let assets: Assets | null = null
  const send = (request: FastifyRequest, reply: FastifyReply, path: string): FastifyReply => {
    assets ??= readAssets()
    const kept = path.startsWith(`${assets.edition}/`)
    const name = kept ? path.slice(assets.edition.length + 1) : path
    const asset = assets.files.get(name)
    if (asset === undefined) throw new Problem('not_found', 'the console has no such file')
    reply.headers({
      'cache-control': kept ? 'max-age=31536000, immutable' : 'no-cache',
      'content-security-policy': POLICY,
      etag: asset.etag,
    })
    if (request.headers['if-none-match'] === asset.etag) return reply.code(304).send()
    if (name === 'index.html') reply.header('link', preloads(assets))
    return reply.type(asset.type).send(asset.body)
  }

  app.get('/', (request, reply) => send(request, reply, 'index.html'))
  app.get<{ Params: { '*': string } }>('/console/*', (request, reply) =>
    send(request, reply, request.params['*']),
  )
  app.get(LOGIN, (request, reply) => {
    const wanted = token()
    return reply.send({
      token_wanted: wanted !== null,
      expires_at: wanted === null ? null : logins.expiryOf(loginOf(request), wanted),
    })
  })
  app.post(LOGIN, { bodyLimit: BODY }, (request, reply) => {
    refuseForms(request)
    const wanted = token()
    if (wanted === null) throw new Problem('conflict', 'no admin token is configured, so no login is needed')
    const given = isObject(request.body) ? stringOf(request.body['token']) : null
    if (given === null || !isRight(request, wanted, given)) {
      throw new Problem('unauthorized', 'this is not the admin token (admin.token in the configuration)')
    }
    const { id, expiresAt } = logins.open(wanted)
    setCookie(request, reply, id)
    return reply.send({ token_wanted: true, expires_at: expiresAt })
  })
  app.post('/console/logout', { bodyLimit: BODY }, (request, reply) => {
    refuseForms(request)
    logins.close(loginOf(request))
    setCookie(request, reply, '')
    return reply.code(204).send()
  })
}

/** @throws {Problem} when another page may have made the browser send `request`. */
export function refuseForms({ headers }: FastifyRequest): void {
  if (headers[CONSOLE_HEADER] === undefined) {
    throw new Problem('forbidden', `a request with the console's cookie has the header ${CONSOLE_HEADER}`)
  }
}

function setCookie(request: FastifyRequest, reply: FastifyReply, id: string): void {
  const secure = request.headers['x-forwarded-proto'] === 'https'
  const maxAge = id === '' ? 0 : LOGIN_TIME / 1000
  reply.header('set-cookie', writeCookie(id, request.socket.localPort ?? 0, maxAge, secure))
}

/** All modules are requested at once instead of one import after the other. */
function preloads({ files, edition }: Assets): string {
  return [...files.keys()]
    .filter((name) => name.endsWith('.js'))
    .map((name) => `<console/${edition}/${name}>; rel=modulepreload`)
    .join(', ')
}
