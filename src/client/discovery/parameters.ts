/** The kinds of ids in a path. */
export type Named = 'session' | 'turn' | 'call' | 'webhook' | 'artifact' | 'credential' | 'template' | 'agent'

export type Ids = Partial<Record<Named, string>>

/**
 * A path may contain several of these words: they are searched in this order. "returns" must not match turn, nor
 * "callback" call.
 */
const WORDS: readonly (readonly [Named, RegExp])[] = [
  ['turn', /^turns?(id)?$/],
  ['call', /^(call|action)s?(id)?$/],
  ['webhook', /^webhooks?(id)?$/],
  ['session', /^sessions?(id)?$/],
  ['artifact', /^artifacts?(id)?$/],
  ['credential', /^credentials?(id)?$/],
  ['template', /^templates?(id)?$/],
  ['agent', /^agents?(id)?$/],
]

/**
 * The kind of each parameter of a path, in order: by its own name, else by the word before it; null for an unknown one.
 */
export function parametersOf(path: string): (Named | null)[] {
  const parts = path.split('/')
  return parts.flatMap((part, at) =>
    part.startsWith('{') ? [named(part) ?? named(parts[at - 1] ?? '')] : [],
  )
}

function named(part: string): Named | null {
  const words = wordsOf(part)
  return WORDS.find(([, pattern]) => words.some((word) => pattern.test(word)))?.[0] ?? null
}

/** `{toolCallId}` and `{tool_call_id}` have three words, `tool-calls` has two. */
function wordsOf(part: string): string[] {
  return part
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/)
}
