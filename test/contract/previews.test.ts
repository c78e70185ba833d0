import { request } from 'undici'
import { describe, expect, it } from 'vitest'
import { codeOf, messageOf, open, PROFILES, type Bench } from '../emulator/support.ts'
import { talk } from './transcript.ts'

const previewDomain = 'previews.example'

const place = (id: string): string => `/v1/sessions/${id}/preview`

const port = (bench: Bench, number: number) => ({
  [bench.details.name === 'a' ? 'port' : 'service_port']: number,
})

/** The answer to a public request for `path` of a session's public address. */
async function visit(bench: Bench, id: string, path = '/'): Promise<{ status: number; text: string }> {
  const response = await request(bench.emulator.baseUrl + path, {
    headers: { host: `${id}.${previewDomain}` },
  })
  return { status: response.statusCode, text: await response.body.text() }
}

describe.each(PROFILES)('previews, profile %s', (profile) => {
  it('PRE-01 PRE-02 PRE-03 EVT-60 the session shows what its agent serves', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    expect((await bench.read(id))['preview']).toEqual({ url: null, port: null, published_url: null })
    await talk(bench, id, 'preview 8080')
    expect((await bench.read(id))['preview']).toEqual({
      port: 8080,
      url: expect.stringContaining(':8080'),
      published_url: null,
    })
    expect(bench.events(id)).toContain('preview.ready')
  })

  it('PRE-04 PRE-05 PRE-06 PRE-09 PRE-12 PRE-13 is published and taken down, in the words of the profile', async () => {
    const bench = await open(profile, { previewDomain })
    const id = await bench.session()
    await talk(bench, id, 'preview 8080')
    const url = `https://${id}.${previewDomain}`
    const published = await bench.call('POST', place(id))
    expect([published.status, published.body]).toEqual([
      200,
      profile === 'a'
        ? { object: 'preview', port: 8080, published_url: url }
        : { session_id: id, public: true, url },
    ])
    expect((await bench.read(id))['preview']).toMatchObject({ port: 8080, published_url: url })
    expect(await visit(bench, id, '/any/where')).toMatchObject({
      status: 200,
      text: expect.stringContaining('8080'),
    })
    const other = await bench.call('POST', place(id), port(bench, 3000))
    expect(other.status).toBe(200)
    expect((await bench.read(id))['preview']).toMatchObject({ port: 3000 })
    const strange = profile === 'a' ? { service_port: 1 } : { port: 1 }
    expect((await bench.call('POST', place(id), strange)).status).toBe(400)
    expect((await bench.call('DELETE', place(id), { port: 1 })).status).toBe(400)
    const down = await bench.call('DELETE', place(id))
    expect([down.status, down.body]).toEqual([
      200,
      profile === 'a'
        ? { object: 'preview', port: 3000, published_url: null }
        : { session_id: id, public: false, url: null },
    ])
    expect((await bench.read(id))['preview']).toMatchObject({ published_url: null })
    expect((await visit(bench, id)).status).toBe(404)
  })

  it('PRE-07 PRE-08 without a base domain there is nowhere to publish, and the answer says so', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await talk(bench, id, 'preview 8080')
    const refused = await bench.call('POST', place(id))
    expect([refused.status, codeOf(refused)]).toEqual([404, 'not_found'])
    expect(messageOf(refused)).toContain('no base domain')
  })

  it('a session that serves nothing has nothing to publish', async () => {
    const bench = await open(profile, { previewDomain })
    const refused = await bench.call('POST', place(await bench.session()))
    expect([refused.status, codeOf(refused)]).toEqual([409, 'conflict'])
  })

  it('PRE-10 PRE-11 an idle published workspace pauses, and the first public request wakes it', async () => {
    const bench = await open(profile, { previewDomain })
    const id = await bench.session()
    await talk(bench, id, 'preview 8080')
    await bench.call('POST', place(id))
    await bench.emulator.advance(6 * 60_000)
    expect(bench.events(id).at(-1)).toBe('sandbox.paused')
    expect((await visit(bench, id)).status).toBe(200)
    expect(bench.events(id).at(-1)).toBe('sandbox.resumed')
    await bench.emulator.advance(4 * 60_000)
    await visit(bench, id)
    await bench.emulator.advance(4 * 60_000)
    expect(bench.events(id).at(-1)).toBe('sandbox.resumed')
    await bench.emulator.advance(2 * 60_000)
    expect(bench.events(id).at(-1)).toBe('sandbox.paused')
    expect((await visit(bench, 'none')).status).toBe(404)
  })

  it('nothing is served any more once the workspace is gone', async () => {
    const bench = await open(profile, { previewDomain })
    const id = await bench.session()
    await talk(bench, id, 'preview 8080')
    await bench.call('POST', place(id))
    await bench.send(id, 'hang')
    await bench.emulator.advance(2 * 3_600_000)
    await bench.reach(id, 'failed')
    expect((await visit(bench, id)).status).toBe(404)
    expect((await bench.read(id))['preview']).toEqual({ url: null, port: null, published_url: null })
  })
})
