import type { ToolResult } from '../../core/tool.ts'

/** An output longer than this is not read, bytes: no answer could carry it. */
export const OUTPUT_READ = 1024 * 1024
/** The service takes bodies of 1 MiB (rule LIM-01); what is around the output fits in 4 KiB. */
const ENCODED_MAX = 1024 * 1024 - 4096
/** A character takes at most so many bytes in JSON. */
const JSON_WORST = 6

export const TOO_LONG: ToolResult = {
  kind: 'rejected',
  error: 'the output is over 1 MiB, or would be as JSON',
}

/** Whether an answer with this output stays below the service's body limit. */
export function fits(output: string): boolean {
  if (output.length * JSON_WORST <= ENCODED_MAX) return true
  return output.length <= ENCODED_MAX && Buffer.byteLength(JSON.stringify(output)) <= ENCODED_MAX
}
