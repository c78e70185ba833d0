import { describe, expect, it } from 'vitest'
import { descriptionOf } from '../emulator/described.ts'
import { listen } from '../emulator/listener.ts'
import { open, PROFILES, rowsOf, type Bench, type Fields } from '../emulator/support.ts'
import { operationsOf, withIds } from './description.ts'

const MCP = { type: 'mcp', name: 'm', url: 'https://mcp.example.com', headers: { authorization: 'secret' } }
const TOOLS = [MCP, { type: 'function', name: 'f' }, { type: 'browse' }]

async function saveAgent(bench: Bench): Promise<string> {
  const { body } = await bench.call('POST', bench.details.paths.saveAgent, { name: 'saved', tools: TOOLS })
  return String(body['id'])
}

/** The media types of what an operation answers when all is well. */
function mediaTypes(document: Fields, path: string): string[] {
  const found = operationsOf(document).find((one) => one.path === path && one.method === 'GET')
  const { responses } = (found?.operation ?? {}) as { responses: Record<string, { content: Fields }> }
  return Object.keys(responses['200']?.content ?? {})
}

/** Schemas that allow nothing beyond what they name. */
function closedIn(value: unknown, place = ''): string[] {
  if (typeof value !== 'object' || value === null) return []
  const here = Reflect.get(value, 'additionalProperties') === false ? [place] : []
  return [...here, ...Object.entries(value).flatMap(([key, field]) => closedIn(field, `${place}/${key}`))]
}

describe.each(PROFILES)('versioning, profile %s', (profile) => {
  it('VER-01 the version is the prefix of every path, and health reports it', async () => {
    const bench = await open(profile)
    const { document } = await descriptionOf(profile)
    for (const { path } of operationsOf(document)) expect(path.split('/')[1]).toBe('v1')
    expect((await bench.call('GET', '/v1/health')).body['version']).toBe('v1')
    expect((document['info'] as Fields)['version']).toBe('v1')
    expect((await bench.call('GET', '/v2/health')).status).toBe(404)
  })

  it('VER-02 no shape of an answer is closed, so that a field may be added', async () => {
    const { document } = await descriptionOf(profile)
    const { schemas } = document['components'] as { schemas: Fields }
    // A permission rule is read back in the very shape that it is sent in, which is closed.
    expect(closedIn(schemas).filter((place) => !place.includes('permission_rules'))).toEqual([])
    const description = await descriptionOf(profile)
    const bench = await open(profile)
    const session = await bench.read(await bench.session())
    expect(description.fits('Session', { ...session, added_later: 1 })).toEqual([])
  })

  it('VER-03 one profile has endpoints that the other does not, beside all that the interface shows', async () => {
    const [mine, other] = await Promise.all(
      [profile, profile === 'a' ? ('b' as const) : ('a' as const)].map(async (name) =>
        operationsOf((await descriptionOf(name)).document).map(({ method, path }) => `${method} ${path}`),
      ),
    )
    const own = mine?.filter((name) => other?.includes(name) === false) ?? []
    expect(own.length).toBeGreaterThan(5)
    for (const stated of ['POST /v1/sessions', 'GET /v1/events', 'GET /v1/agents', 'POST /v1/webhooks'])
      expect([mine?.includes(stated), other?.includes(stated)]).toEqual([true, true])
  })

  it('VER-04 an event of a name that no version knows is a frame like any other', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const stream = await listen(bench)
    const seq = bench.emulator.publish(id, 'agent.future', { any: 'thing' })
    const frame = await stream.hear('agent.future')
    expect([frame.id, frame.data['type'], frame.data['seq']]).toEqual([String(seq), 'agent.future', seq])
  })

  it('VER-05 VER-06 the description carries the list of changes: what was removed, and what has another shape', async () => {
    const { document } = await descriptionOf(profile)
    const changes = (document['info'] as Fields)['x-change-list'] as Fields[]
    const of = (kind: string) =>
      changes.filter((one) => one['kind'] === kind).map((one) => String(one['change']))
    expect(of('reshape').join()).toMatch(/one `tools` array/)
    expect(of('removal').join()).toMatch(/MCP credentials/)
    expect(changes).toHaveLength(of('reshape').length + of('removal').length)
  })

  it('VER-07 VER-08 what is described answers, and nothing is described that does not', async () => {
    const bench = await open(profile, { limits: { readsBurst: 10_000, streamsPerToken: 100 } })
    const live = (await bench.call('GET', '/v1/openapi.json')).body
    expect(live).toEqual((await descriptionOf(profile)).document)
    const operations = operationsOf(live)
    expect(operations.length).toBeGreaterThan(35)
    for (const { method, path } of operations) {
      const reply = await bench.call(method, `${withIds(path)}?stop=1`)
      expect([method, path, reply.status]).toEqual([method, path, 400])
    }
  })

  it('VER-09 VER-10 VER-11 VER-12 describes the media types that are sent, so that a generated client reads them', async () => {
    const bench = await open(profile)
    const { document } = await descriptionOf(profile)
    for (const path of ['/v1/events', bench.details.paths.sessionStream])
      expect(mediaTypes(document, path)).toEqual(['text/event-stream'])
    expect((await listen(bench)).response.headers['content-type']).toBe('text/event-stream')
    const archive = '/v1/sessions/{session_id}/artifacts/archive'
    const content = '/v1/sessions/{session_id}/artifacts/{artifact_id}/content'
    expect(mediaTypes(document, archive)).toEqual(['application/x-tar'])
    expect(mediaTypes(document, content)).toEqual(['application/octet-stream'])
    const id = await bench.session()
    await bench.send(id, 'write outputs/a.txt hi')
    await bench.settle(id)
    const [artifact] = rowsOf((await bench.call('GET', bench.path('artifacts', id))).body)
    const sent = async (path: string): Promise<unknown> =>
      (
        await bench.call(
          'GET',
          path.replace('{session_id}', id).replace('{artifact_id}', String(artifact?.['id'])),
        )
      ).headers['content-type']
    expect(await sent(archive)).toBe('application/x-tar')
    expect(await sent(content)).toBe(
      profile === 'a' ? 'text/plain; charset=utf-8' : 'application/octet-stream',
    )
  })

  it('VER-13 VER-17 VER-18 the template read is deprecated in favour of the agent read, with an end named or not, as the profile has it', async () => {
    const bench = await open(profile)
    const { document } = await descriptionOf(profile)
    const deprecated = operationsOf(document).filter(({ operation }) => operation['deprecated'] === true)
    expect(deprecated.map(({ method, path }) => `${method} ${path}`)).toContain(
      'GET /v1/environment-templates/{template_id}',
    )
    for (const { operation } of deprecated)
      expect(operation['x-sunset']).toBe(profile === 'a' ? undefined : '2027-12-31')
    const { schemas } = document['components'] as { schemas: Record<string, { properties: Fields }> }
    const agent = Object.keys(schemas['Agent']?.properties ?? {})
    const template = Object.keys(schemas['EnvironmentTemplate']?.properties ?? {})
    expect(template.length).toBeGreaterThan(3)
    expect(template.filter((field) => !agent.includes(field))).toEqual([])
    expect((await bench.call('GET', '/v1/environment-templates/none')).status).toBe(404)
  })

  it('VER-14 VER-15 session tools and agents are read as one tools array whose entries all have a type', async () => {
    const bench = await open(profile)
    const session = await bench.session({ agent: { tools: TOOLS } })
    const agent = await saveAgent(bench)
    for (const path of [`/v1/sessions/${session}/tools`, `/v1/agents/${agent}`]) {
      const { body, text } = await bench.call('GET', path)
      expect(rowsOf(body['tools']).map(({ type }) => type)).toEqual(['mcp', 'function', 'browse'])
      expect(text).not.toContain('secret')
      expect(Object.keys(body).filter((key) => /mcp|function/.test(key))).toEqual([])
    }
  })

  it('VER-16 a session keeps its runtime through every workspace, while later ones have the newer', async () => {
    const bench = await open(profile)
    bench.emulator.faults.set({ old_runtimes: 1 })
    const [old, later] = [await bench.session(), await bench.session()]
    const change = async (id: string) =>
      (await bench.call('PATCH', `/v1/sessions/${id}`, { agent: { instructions: 'Be brief.' } })).status
    for (let workspace = 0; workspace < 2; workspace++) {
      await bench.send(old, 'say hello')
      await bench.settle(old)
      expect([await change(old), await change(later)]).toEqual([profile === 'a' ? 409 : 422, 200])
      await bench.emulator.advance(3 * 3_600_000)
    }
  })
})
