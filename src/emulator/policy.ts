import { Type, type Static } from 'typebox'

const field = Type.Optional(Type.String({ maxLength: 500 }))

const permissionRuleSchema = Type.Object(
  { decision: Type.Enum(['allow', 'deny', 'ask']), tool: field, path: field, command: field, domain: field },
  { additionalProperties: false },
)

export const permissionRulesSchema = Type.Array(permissionRuleSchema, { maxItems: 50 })

/** A rule overrides the approval mode in both directions (rules SES-61, SES-62). */
export type PermissionRule = Static<typeof permissionRuleSchema>

/** The next action of the agent. */
export interface Attempt {
  tool: string
  path?: string
  command?: string
  domain?: string
  /** Of an MCP tool: whether its server declares that it only reads. */
  readOnlyHint?: boolean
}

export type Decision =
  | { verdict: 'allow' }
  | { verdict: 'ask' }
  | { verdict: 'deny'; code: 'denied_read_only' | 'denied_by_rule'; sentence: string }

/** Tools that change something: `read_only` blocks them, and the asking mode needs an approval. */
const CHANGING = new Set(['shell', 'write', 'serve', 'preview', 'commit', 'browser_act'])

/**
 * The first matching rule decides; without one the mode decides. `asking`: the mode needs an
 * approval before changes.
 */
export function decide(
  attempt: Attempt,
  rules: readonly PermissionRule[],
  mode: { readOnly: boolean; asking: boolean },
): Decision {
  const rule = rules.find((candidate) => fits(candidate, attempt))
  if (rule?.decision === 'deny') {
    const sentence = `A permission rule of this session does not allow ${attempt.tool}.`
    return { verdict: 'deny', code: 'denied_by_rule', sentence }
  }
  // In the read-only mode no rule allows a tool whose server declares that it changes something.
  if (mode.readOnly && attempt.readOnlyHint === false) return deniedReadOnly(attempt)
  if (rule !== undefined) return { verdict: rule.decision === 'ask' ? 'ask' : 'allow' }
  const changes = attempt.readOnlyHint === undefined ? CHANGING.has(attempt.tool) : !attempt.readOnlyHint
  if (!changes) return { verdict: 'allow' }
  if (mode.readOnly) return deniedReadOnly(attempt)
  return { verdict: mode.asking ? 'ask' : 'allow' }
}

function deniedReadOnly({ tool }: Attempt): Decision {
  const sentence = `This session is read-only, so ${tool} is not allowed.`
  return { verdict: 'deny', code: 'denied_read_only', sentence }
}

/** True when every field of the rule matches; `*` matches anything. */
function fits(rule: PermissionRule, attempt: Attempt): boolean {
  return (['tool', 'path', 'command', 'domain'] as const).every((key) => {
    const pattern = rule[key]
    if (pattern === undefined) return true
    const given = attempt[key]
    return given !== undefined && wildcard(pattern, given)
  })
}

/** Matches piece by piece, so that no pattern of a client costs more than its length times the text's. */
function wildcard(pattern: string, text: string): boolean {
  const pieces = pattern.split('*')
  const first = pieces[0] ?? ''
  if (pieces.length === 1) return text === first
  const last = pieces.at(-1) ?? ''
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last))
    return false
  let at = first.length
  for (const piece of pieces.slice(1, -1)) {
    const found = text.indexOf(piece, at)
    if (found === -1 || found + piece.length > text.length - last.length) return false
    at = found + piece.length
  }
  return true
}
