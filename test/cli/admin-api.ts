import type { AddressInfo } from 'node:net'
import fastify from 'fastify'
import { onTestFinished } from 'vitest'

export interface Asked {
  method: string
  url: string
  authorization: string | undefined
  body: unknown
}

/** Answers by `METHOD /path` (no query); what is not there is 404 with a problem. */
export async function adminApi(
  answers: Record<string, (asked: Asked, query: URLSearchParams) => unknown>,
): Promise<{ url: string; asked: Asked[] }> {
  const asked: Asked[] = []
  const app = fastify({ forceCloseConnections: true })
  app.all('/*', async (request, reply) => {
    const { method, url, body } = request
    const one = { method, url, authorization: request.headers.authorization, body: body ?? null }
    asked.push(one)
    const [path = '', query = ''] = url.split('?')
    const answer = answers[`${method} ${path}`]?.(one, new URLSearchParams(query))
    if (answer !== undefined) return await reply.send(answer)
    return await reply
      .code(404)
      .type('application/problem+json')
      .send({ title: 'not_found', detail: `no ${path} here` })
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  onTestFinished(() => app.close())
  return { url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`, asked }
}

/** A list as the API pages it: two entries a page, whatever is asked. */
export function paged(
  rows: readonly Record<string, unknown>[],
  idOf: (row: Record<string, unknown>) => unknown,
) {
  return (_asked: Asked, query: URLSearchParams) => {
    const after = query.get('after')
    const from = after === null ? 0 : rows.findIndex((row) => idOf(row) === after) + 1
    const data = rows.slice(from, from + Math.min(2, Number(query.get('limit'))))
    const last = data.at(-1)
    return {
      object: 'list',
      data,
      has_more: from + data.length < rows.length,
      last_id: last === undefined ? '' : idOf(last),
    }
  }
}
