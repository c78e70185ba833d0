import { afterEach, describe, expect, it } from 'vitest'
import { startAdmin, type Running } from '../admin/running.ts'

const CONSOLE = { 'x-sidecar-console': '1' }
const HOUR = 60 * 60_000

let running: Running | null = null
afterEach(async () => {
  await running?.stop()
  running = null
})

async function start(options: Parameters<typeof startAdmin>[0] = {}): Promise<Running> {
  running = await startAdmin(options)
  return running
}

/** Gives the token. @returns the cookie as a browser sends it back. */
async function logIn({ post }: Running, token: string): Promise<string> {
  const reply = await post('/console/login', { token }, CONSOLE)
  expect(reply.status).toBe(200)
  return String(reply.headers['set-cookie']).split(';')[0] ?? ''
}

describe("the console's files", () => {
  it('come with a policy under which nothing inline and nothing foreign runs', async () => {
    const { get } = await start()
    const page = await get('/')
    expect(page.status).toBe(200)
    expect(page.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'same-origin',
    })
    expect(page.text).not.toMatch(/<style|style=|<script(?![^>]*\ssrc=)|\son\w+=|https?:/)
  })

  it('are all there: each module that another names is served as one', async () => {
    const { get } = await start()
    const found = new Set<string>()
    const walk = async (path: string): Promise<void> => {
      if (found.has(path)) return
      found.add(path)
      const file = await get(path)
      expect([path, file.status, file.headers['content-type']]).toEqual([
        path,
        200,
        'text/javascript; charset=utf-8',
      ])
      for (const [, target = ''] of file.text.matchAll(/(?:from|import)\s*["']([^"']+)["']/g)) {
        await walk(new URL(target, `http://console${path}`).pathname)
      }
    }
    const { headers, text } = await get('/')
    const [, app = ''] = /src="(console[^"]+)"/.exec(text) ?? []
    await walk(`/${app}`)
    expect([...found].map((path) => path.split('/').slice(3).join('/'))).toContain('vendor/preact.js')
    const preloaded = [...String(headers['link']).matchAll(/<([^>]+)>/g)].map(([, name]) => `/${name}`)
    expect(preloaded.sort()).toEqual([...found].sort())
  })

  it('are sent again only after a change', async () => {
    const { get } = await start()
    const { headers } = await get('/console/app.js')
    const etag = String(headers['etag'])
    const again = await get('/console/app.js', { 'if-none-match': etag })
    expect([again.status, again.text]).toEqual([304, ''])
    expect(headers['cache-control']).toBe('no-cache')
    const [, style = ''] = /href="(console[^"]+css)"/.exec((await get('/')).text) ?? []
    expect((await get(`/${style}`)).headers['cache-control']).toBe('max-age=31536000, immutable')
  })

  it('are no way to other files', async () => {
    const { get } = await start()
    for (const path of ['/console/../package.json', '/console/..%2fapp.js', '/console/vendor', '/console/']) {
      expect((await get(path)).status).toBe(404)
    }
  })

  it('exist where the API does: not off loopback without a token, nor under a name that was rebound', async () => {
    const { get } = await start({ listen: { host: '0.0.0.0', port: 0 } })
    for (const path of ['/', '/console/app.js', '/console/login']) expect((await get(path)).status).toBe(404)
    await running?.stop()
    const local = await start()
    expect((await local.get('/', { host: 'evil.example' })).status).toBe(403)
  })
})

describe('a login', () => {
  it('exchanges the token for a cookie that no script reads and no other site sends', async () => {
    const admin = await start({ token: () => 'correct horse' })
    expect((await admin.get('/')).status).toBe(200)
    expect((await admin.get('/api/status')).status).toBe(401)
    const reply = await admin.post('/console/login', { token: 'correct horse' }, CONSOLE)
    const port = new URL(admin.base).port
    expect(reply.headers['set-cookie']).toMatch(
      new RegExp(
        `^session_sidecar_${port}=[\\w-]{22}\\.\\d{13}\\.[\\w-]{43}; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict$`,
      ),
    )
    expect(reply.text).not.toContain('correct horse')
    const cookie = await logIn(admin, 'correct horse')
    expect((await admin.get('/api/status', { cookie })).status).toBe(200)
    expect((await admin.get('/openapi.json', { cookie: `other=1; ${cookie}` })).status).toBe(200)
  })

  it('asks the browser to keep the cookie to https when it came that way', async () => {
    const { post } = await start({ token: () => 't' })
    const reply = await post('/console/login', { token: 't' }, { ...CONSOLE, 'x-forwarded-proto': 'https' })
    expect(reply.headers['set-cookie']).toMatch(/; Secure$/)
  })

  it.each([{ token: 'wrong' }, { token: 7 }, {}, 'no JSON'])('refuses %j', async (body) => {
    const { post } = await start({ token: () => 'secret' })
    const reply = await post('/console/login', body, CONSOLE)
    expect(reply.status).toBe(body === 'no JSON' ? 400 : 401)
    expect(reply.headers['set-cookie']).toBeUndefined()
  })

  it('changes nothing for a page of another origin, nor for a form', async () => {
    const admin = await start({ token: () => 'secret' })
    const cookie = await logIn(admin, 'secret')
    const pause = (headers: Record<string, string>) =>
      admin.post('/api/handlers/app/pause', {}, { cookie, ...headers })
    const refused = [
      await pause({}),
      await pause({ ...CONSOLE, origin: 'https://evil.example' }),
      await pause({ ...CONSOLE, 'sec-fetch-site': 'same-site' }),
      await admin.get('/api/status', { cookie, 'sec-fetch-site': 'cross-site' }),
      await admin.post('/console/login', { token: 'secret' }),
      await admin.post('/console/logout', {}, { cookie }),
    ]
    expect(refused.map(({ status }) => status)).toEqual([403, 403, 403, 403, 403, 403])
    expect(admin.asked).toEqual([])
    expect((await pause({ ...CONSOLE, origin: admin.base })).status).toBe(202)
  })

  it('ends by logging out, after twelve hours, and when the token becomes another', async () => {
    let token = 'one'
    let now = 0
    const admin = await start({ token: () => token, now: () => now })
    const works = async (cookie: string) => (await admin.get('/api/status', { cookie })).status === 200

    const left = await logIn(admin, 'one')
    await admin.post('/console/logout', {}, { ...CONSOLE, cookie: left })
    expect(await works(left)).toBe(false)
    // Logouts of invented logins do not displace it.
    const [name = '', expiry = '', signature = ''] = left.split('.')
    for (let n = 0; n < 100; n++) {
      const invented = [`${name.slice(0, -4)}${String(n).padStart(4, '0')}`, expiry, signature].join('.')
      await admin.post('/console/logout', {}, { ...CONSOLE, cookie: invented })
    }
    expect(await works(left)).toBe(false)

    const old = await logIn(admin, 'one')
    now += 12 * HOUR - 1
    expect(await works(old)).toBe(true)
    now += 1
    expect(await works(old)).toBe(false)

    const rotated = await logIn(admin, 'one')
    token = 'two'
    expect(await works(rotated)).toBe(false)
  })

  it('is accepted by each process with the same token, and by none with another', async () => {
    const cookie = await logIn(await start({ token: () => 'one' }), 'one')
    const port = new URL(running?.base ?? '').port
    const statusAt = async (token: string, sent: string): Promise<number> => {
      await running?.stop()
      const listen = { host: '127.0.0.1', port: Number(port) }
      return (await (await start({ token: () => token, listen })).get('/api/status', { cookie: sent })).status
    }
    expect(await statusAt('one', cookie)).toBe(200)
    expect(await statusAt('two', cookie)).toBe(401)
    const [name = '', expiry = '', signature = ''] = cookie.split('.')
    const later = [name, Number(expiry) + HOUR, signature].join('.')
    const other = [name.slice(0, -1) + (name.endsWith('A') ? 'B' : 'A'), expiry, signature].join('.')
    for (const forged of [later, other]) expect(await statusAt('one', forged)).toBe(401)
  })

  it('reports whether a token is needed, and when the login expires', async () => {
    const admin = await start({ token: () => 't', now: () => 5 })
    const cookie = await logIn(admin, 't')
    expect((await admin.get('/console/login')).json).toEqual({ token_wanted: true, expires_at: null })
    expect((await admin.get('/console/login', { cookie })).json['expires_at']).toBe(5 + 12 * HOUR)
    await running?.stop()
    const open = await start()
    expect((await open.get('/console/login')).json).toEqual({ token_wanted: false, expires_at: null })
    expect((await open.post('/console/login', { token: 't' }, CONSOLE)).status).toBe(409)
  })
})

it('lists are sent again only when they changed', async () => {
  const { get } = await start()
  const first = await get('/api/tools')
  const again = await get('/api/tools', { 'if-none-match': String(first.headers['etag']) })
  expect([first.status, again.status, again.text]).toEqual([200, 304, ''])
})
