import { Type } from 'typebox'
import { ANY_FUNCTION } from '../../../core/tool.ts'
import type { AdminActions, ToolEntry } from '../actions.ts'
import { component } from '../component.ts'
import { limitOf, listRoute, slice } from '../page.ts'
import type { Route } from '../route.ts'

const Tool = component(
  'Tool',
  Type.Object(
    { name: Type.String(), type: Type.Literal('function') },
    { additionalProperties: true, description: 'An entry of the `tools` array to declare on a session.' },
  ),
)

export function toolRoute(actions: AdminActions): Route {
  return listRoute(
    {
      path: '/api/tools',
      summary: 'The configured function tools: `data` is the `tools` array to declare on a session.',
      of: 'tools',
      entry: Tool,
      // One page holds all tools that a session can declare.
      query: limitOf(100),
      show: (tool: ToolEntry) => tool,
    },
    (query) =>
      slice(
        actions.tools().filter(({ name }) => name !== ANY_FUNCTION),
        query,
      ),
  )
}
