import { ServiceError } from '../core/errors.ts'
import type { Json } from '../std/json.ts'
import { fillTemplate } from '../std/template.ts'

/**
 * A body that discovery found, with its placeholders filled. The error names `key`, which sets the body in `routes`
 * if it was not found.
 * @throws {ServiceError} `route_unknown`
 */
export function filled(
  template: Json | null,
  values: Record<string, string>,
  what: string,
  key: string,
): Json {
  if (template !== null) return fillTemplate(template, values)
  const message = `the service's document has no ${what}; set routes.${key}`
  throw new ServiceError({ code: 'route_unknown', status: 0, message })
}
