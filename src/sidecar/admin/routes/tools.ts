import { Type } from 'typebox'
import { ANY_FUNCTION } from '../../../core/tool.ts'
import type { AdminActions } from '../actions.ts'
import { component } from '../component.ts'
import { page, pageOf, pagingQuery, slice } from '../page.ts'
import { ok, route, type Route } from '../route.ts'

const Tool = component(
  'Tool',
  Type.Object(
    { name: Type.String(), type: Type.Literal('function') },
    { additionalProperties: true, description: 'An entry of the `tools` array to declare on a session.' },
  ),
)

export function toolRoutes(actions: AdminActions): Route[] {
  return [
    route(
      {
        method: 'GET',
        path: '/api/tools',
        summary: 'The configured function tools: `data` is the `tools` array to declare on a session.',
        // One page holds all tools that a session can declare.
        query: pagingQuery(100),
        success: { status: 200, description: 'A page of tools.', content: pageOf(Tool) },
      },
      ({ query }) =>
        ok(
          page(
            slice(
              actions.tools().filter(({ name }) => name !== ANY_FUNCTION),
              query,
              ({ name }) => name,
            ),
            ({ name }) => name,
            (tool) => tool,
          ),
        ),
    ),
  ]
}
