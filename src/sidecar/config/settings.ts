import { readFileSync } from 'node:fs'
import type { Shape } from './shape.ts'

/**
 * The schema of the configuration as it stands in the file that editors read; a test holds it equal to schema.ts, which
 * makes it. To make it anew would load its builder, which takes longer than all else that a command does at its start.
 */
export const settings = JSON.parse(
  readFileSync(new URL('../../../config/schema.json', import.meta.url), 'utf8'),
) as Shape
