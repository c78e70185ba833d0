import { Type } from 'typebox'
import type { OpenDetails } from '../profile/details.ts'
import { toolsSchema } from '../tool.ts'
import { textSchema } from './session-body.ts'

/** The common fields of a saved agent and a template. */
export function savedBody(details: OpenDetails) {
  return {
    name: Type.String({ pattern: '^[a-z0-9][a-z0-9_-]{0,63}$', description: 'A slug; not an identifier.' }),
    tools: Type.Optional(toolsSchema),
    text: Type.Optional(textSchema(details)),
  }
}
