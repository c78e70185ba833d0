import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { jsonSchema } from '../../src/sidecar/config/schema.ts'

export const SCHEMA_FILE = fileURLToPath(new URL('../../config/schema.json', import.meta.url))

/** What editors check and complete a configuration with, as JSON. */
export function schemaDocument(): unknown {
  return JSON.parse(JSON.stringify(jsonSchema())) as unknown
}

// `npm run schema:config` writes it anew.
if (import.meta.main) writeFileSync(SCHEMA_FILE, `${JSON.stringify(schemaDocument(), null, 2)}\n`)
