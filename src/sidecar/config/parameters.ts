import { isObject, type Json } from '../../std/json.ts'

/**
 * What is wrong with a JSON Schema that a tool declares, or null. Of draft-07 or 2020-12, as the library takes them. Loaded
 * where a tool declares one: a start without tools is faster by it.
 */
export async function schemaFault(schema: Json | undefined): Promise<string | null> {
  if (!isObject(schema)) return null
  const draft07 = typeof schema.$schema === 'string' && schema.$schema.includes('draft-07')
  const library = draft07 ? (await import('ajv')).Ajv : (await import('ajv/dist/2020.js')).Ajv2020
  const ajv = new library({ allErrors: true })
  try {
    if (ajv.validateSchema(schema) === true) return null
  } catch {
    return 'names a $schema that is not known'
  }
  const [first] = ajv.errors ?? []
  const where = (first?.instancePath ?? '').slice(1).replaceAll('/', '.')
  return `is not a JSON Schema: ${where === '' ? '' : `${where} `}${first?.message ?? ''}`
}
