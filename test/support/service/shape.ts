/** Pieces of an OpenAPI document, for tests that need one with little in it. */

const text = { type: 'string' }

/** A document of operations by `METHOD /path`, in their order. */
export function documentOf(operations: Record<string, object>) {
  const paths: Record<string, Record<string, object>> = {}
  for (const [place, operation] of Object.entries(operations)) {
    const [method = '', path = ''] = place.split(' ')
    paths[path] = { ...paths[path], [method.toLowerCase()]: operation }
  }
  return { paths }
}

export const json = (schema: object) => ({ content: { 'application/json': { schema } } })

export const fields = (...names: string[]) => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, text])),
})

/** An operation whose body has these fields. */
export const takes = (...names: string[]) => ({ requestBody: json(fields(...names)) })

/** An operation that answers with this. */
export const answers = (schema: object, status = '200') => ({ responses: { [status]: json(schema) } })

/** The schema of a resource of the service, which says in `object` what it is. */
export const resource = (kind: string) => ({ type: 'object', properties: { object: { const: kind } } })

/** A list of these. */
export const listOf = (kind: string) => ({
  type: 'object',
  properties: { data: { type: 'array', items: resource(kind) } },
})
