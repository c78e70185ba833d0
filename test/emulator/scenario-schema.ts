import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { scenarioSchema } from '../../src/emulator/index.ts'

export const SCHEMA_FILE = fileURLToPath(new URL('../../config/scenarios/schema.json', import.meta.url))

/** What editors check and complete scenario files with, as JSON. */
export function schemaDocument(): unknown {
  const document = { $schema: 'http://json-schema.org/draft-07/schema#', ...scenarioSchema }
  return JSON.parse(JSON.stringify(document)) as unknown
}

// `npm run schema:scenario` writes it anew.
if (import.meta.main) writeFileSync(SCHEMA_FILE, `${JSON.stringify(schemaDocument(), null, 2)}\n`)
