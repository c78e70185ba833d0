import { readFileSync } from 'node:fs'
import type { Shape } from './shape.ts'

/**
 * The schema of the configuration, read from the file for editors. schema.ts generates that file, and a test keeps both
 * equal. To build the schema at each start would load the package typebox, which takes longer than the rest of a
 * command's start.
 */
export const settings = JSON.parse(
  readFileSync(new URL('../../../config/schema.json', import.meta.url), 'utf8'),
) as Shape
