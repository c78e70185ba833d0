import { describe, expect, it, onTestFinished } from 'vitest'
import { createClient } from '../../src/client/index.ts'
import { startServer } from '../support/service/server.ts'
import { all, faultOf, PROFILES, stand } from './support.ts'

describe.each(PROFILES)('a list (profile %s)', (profile) => {
  it('pages through all of it, in order, each entry once', async () => {
    const { client } = await stand(profile)
    const made: string[] = []
    for (let count = 0; count < 7; count++) made.push((await client.sessions.create()).id)
    for (const limit of [1, 3, 7, 100]) {
      const listed = await all(client.sessions.list({ limit, order: 'asc' }))
      expect(listed.map(({ id }) => id)).toEqual(made)
    }
    expect((await all(client.sessions.list())).map(({ id }) => id)).toEqual(made.toReversed())
  })

  it('gives one page, and the next after its last id', async () => {
    const { client } = await stand(profile)
    for (let count = 0; count < 3; count++) await client.sessions.create({ title: String(count) })
    const first = await client.sessions.list({ limit: 2, order: 'asc' }).page()
    expect(first).toMatchObject({ hasMore: true, lastId: first.data[1]?.id })
    const second = await client.sessions.list({ limit: 2, order: 'asc', after: first.lastId ?? '' }).page()
    expect(second.data.map(({ title }) => title)).toEqual(['2'])
    expect(second.hasMore).toBe(false)
  })

  it('is empty after a cursor that leads nowhere, and refuses a limit that is too large', async () => {
    const { client } = await stand(profile)
    await client.sessions.create()
    expect(await all(client.sessions.list({ after: 'never-issued' }))).toEqual([])
    expect(await faultOf(client.sessions.list({ limit: 101 }).page())).toMatchObject({
      code: 'invalid_request',
    })
  })
})

/** A service with a list of `length` agents, which records its requests. */
async function paged(length: number) {
  const server = await startServer(({ path, query }) => {
    if (path === '/v1/openapi.json') return { body: { paths: {} } }
    const from = Number(query['after'] ?? -1) + 1
    const data = [from, from + 1].filter((id) => id < length).map((id) => ({ id: String(id) }))
    return { body: { data, has_more: from + 2 < length, last_id: data.at(-1)?.id ?? null } }
  })
  const client = createClient({ baseUrl: server.url, token: 'svc_pat_one' })
  onTestFinished(async () => {
    await client.close()
    await server[Symbol.asyncDispose]()
  })
  const pages = () => server.asked.filter(({ path }) => path === '/v1/agents').map(({ query }) => query)
  return { client, server, pages }
}

describe('paging', () => {
  it('asks for nothing before it is read, for a page only when it is reached, and for none after a break', async () => {
    const { client, pages } = await paged(100)
    const list = client.agents.list()
    expect(pages()).toEqual([])
    const read: string[] = []
    for await (const { id } of list) {
      read.push(id)
      if (read.length === 4) break
    }
    expect(read).toEqual(['0', '1', '2', '3'])
    expect(pages()).toEqual([{}, { after: '1' }])
    expect((await list.page()).data).toHaveLength(2)
  })

  it('ends when has_more is true but the cursor stays the same', async () => {
    const { client, server, pages } = await paged(4)
    server.answer = ({ path }) =>
      path === '/v1/agents'
        ? { body: { data: [{ id: '1' }], has_more: true, last_id: '1' } }
        : { body: { paths: {} } }
    expect(await all(client.agents.list())).toHaveLength(2)
    expect(pages()).toHaveLength(2)
  })

  it('accepts a bare array as a list', async () => {
    const { client, server } = await paged(0)
    server.answer = ({ path }) => ({ body: path === '/v1/agents' ? [{ id: 'one' }] : { paths: {} } })
    expect(await all(client.agents.list())).toMatchObject([{ id: 'one', name: null, tools: [] }])
  })

  it('fails on an entry that cannot be read, rather than leave it out', async () => {
    const { client, server } = await paged(0)
    server.answer = ({ path }) => ({
      body: path === '/v1/agents' ? { data: [{ id: 'one' }, { id: 7 }], has_more: false } : { paths: {} },
    })
    expect(await faultOf(client.agents.list().page())).toMatchObject({
      code: 'malformed_answer',
      message: 'id of an agent is missing',
    })
  })

  it('filters sessions by one pair of metadata alone', async () => {
    const { client } = await paged(0)
    expect(() => client.sessions.list({ metadata: { a: '1', b: '2' } })).toThrow(TypeError)
    expect(() => client.sessions.list({ metadata: { 'a:b': '1' } })).toThrow(TypeError)
  })
})
