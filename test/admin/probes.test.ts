import { expect, it } from 'vitest'
import { startAdmin } from './running.ts'

it('answers probes with one word, and with the checks when asked to be verbose', async () => {
  const running = await startAdmin()
  try {
    for (const probe of ['livez', 'readyz', 'startupz']) {
      const reply = await running.get(`/${probe}`)
      expect([reply.status, reply.text]).toEqual([200, 'ok\n'])
      expect((await running.get(`/${probe}?verbose&unknown=1`)).text).toMatch(
        new RegExp(`^\\[\\+\\] .* ok\\n${probe} check passed\\n$`),
      )
    }
  } finally {
    await running.stop()
  }
})

it('refuses with a problem that names the failed checks', async () => {
  let ok = false
  const running = await startAdmin({
    ready: () => ({
      ok,
      checks: [
        { name: 'store', ok: true },
        { name: 'draining', ok, detail: 'the sidecar is stopping' },
      ],
    }),
    started: () => ok,
  })
  try {
    const reply = await running.get('/readyz')
    expect([reply.status, reply.headers['content-type']]).toEqual([503, 'application/problem+json'])
    expect(reply.json['detail']).toBe('readyz check failed: the sidecar is stopping')
    const verbose = await running.get('/readyz?verbose')
    expect([verbose.status, verbose.text]).toEqual([
      503,
      '[+] store ok\n[-] draining failed: the sidecar is stopping\nreadyz check failed\n',
    ])
    expect((await running.get('/startupz')).status).toBe(503)
    expect((await running.get('/livez')).status).toBe(200)
    ok = true
    expect((await running.get('/readyz')).status).toBe(200)
    expect((await running.get('/startupz')).status).toBe(200)
  } finally {
    await running.stop()
  }
})
