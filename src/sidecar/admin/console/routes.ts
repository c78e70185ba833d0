import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { IncomingMessage } from 'node:http'
import { isObject, stringOf } from '../../../std/json.ts'
import { LOGIN, refuseForms } from '../guard.ts'
import { Problem } from '../problem.ts'
import { readAssets, type Assets } from './assets.ts'
import { cookieOf, LOGIN_TIME, loginOf, type Logins } from './logins.ts'

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

/** The most bytes of a body from a client that may not be logged in. */
const bodyLimit = 4 * 1024

export interface ConsoleDoor {
  token: () => string | null
  logins: Logins
  /** Compares the token of a request with the admin token. @throws {Problem} 429 when too many wrong ones come. */
  isRight: (request: IncomingMessage, token: string, given: string) => boolean
}

/** Adds the console: its files, and the exchange of the admin token for a cookie that no script can read. */
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
    if (name === 'index.html') reply.header('link', preloads(assets))
    if (request.headers['if-none-match'] === asset.etag) return reply.code(304).send()
    return reply.type(asset.type).send(asset.body)
  }

  app.get('/', (request, reply) => send(request, reply, 'index.html'))
  app.get<{ Params: { '*': string } }>('/console/*', (request, reply) =>
    send(request, reply, request.params['*']),
  )
  app.get(LOGIN, ({ raw }) => {
    const wanted = token()
    const expiry = wanted === null ? null : logins.expiryOf(loginOf(raw), wanted)
    return { token_wanted: wanted !== null, expires_at: expiry }
  })
  app.post(LOGIN, { bodyLimit }, ({ raw, headers, body }, reply) => {
    refuseForms(headers)
    const wanted = token()
    if (wanted === null) throw new Problem('conflict', 'no admin token is configured, so no login is needed')
    const given = isObject(body) ? stringOf(body['token']) : null
    if (given === null || !isRight(raw, wanted, given)) {
      throw new Problem('unauthorized', 'this is not the admin token (admin.token in the configuration)')
    }
    const { id, expiresAt } = logins.open(wanted)
    reply.header('set-cookie', cookieFor(raw, id))
    return { token_wanted: true, expires_at: expiresAt }
  })
  app.post('/console/logout', { bodyLimit }, ({ raw, headers }, reply) => {
    refuseForms(headers)
    const wanted = token()
    if (wanted !== null) logins.close(loginOf(raw), wanted)
    return reply.code(204).header('set-cookie', cookieFor(raw, '')).send()
  })
}

/** `id` empty: deletes the cookie. */
function cookieFor({ headers, socket }: IncomingMessage, id: string): string {
  const secure = headers['x-forwarded-proto'] === 'https' ? '; Secure' : ''
  const maxAge = id === '' ? 0 : LOGIN_TIME / 1000
  return `${cookieOf(socket.localPort ?? 0)}=${id}; Max-Age=${maxAge}; Path=/; HttpOnly; SameSite=Strict${secure}`
}

/** All modules are requested at once instead of one import after the other. */
function preloads({ files, edition }: Assets): string {
  return [...files.keys()]
    .filter((name) => name.endsWith('.js'))
    .map((name) => `<console/${edition}/${name}>; rel=modulepreload`)
    .join(', ')
}
