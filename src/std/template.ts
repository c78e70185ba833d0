import { isObject, type Json, type JsonObject } from './json.ts'

/** A JSON object such as `{"content": "{{text}}"}`, in which `{{text}}` stands for a value. */
export type Template = JsonObject

/** The template with its values; a name without a value stays as it is. */
export function fillTemplate(template: Json, values: Record<string, string>): Json {
  if (typeof template === 'string') {
    return template.replace(/\{\{(\w+)\}\}/g, (whole, name: string) =>
      Object.hasOwn(values, name) ? String(values[name]) : whole,
    )
  }
  if (Array.isArray(template)) return template.map((entry) => fillTemplate(entry, values))
  if (!isObject(template)) return template
  return Object.fromEntries(
    Object.entries(template).map(([key, value]) => [
      key,
      value === undefined ? null : fillTemplate(value, values),
    ]),
  )
}
