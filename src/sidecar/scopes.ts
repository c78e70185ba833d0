import type { ToolSpec } from '../core/tool.ts'

/** A scope that the token lacks, and the consequence. */
export interface MissingScope {
  scope: string
  costs: string
  /** Whether a configured feature does not work at all without it. */
  grave: boolean
}

/** The scopes that the token lacks for `tools` and for the sidecar itself. */
export function missingScopes(
  scopes: readonly string[],
  tools: readonly Pick<ToolSpec, 'onNotDelivered'>[],
): MissingScope[] {
  const wanted: (MissingScope & { needed: boolean })[] = [
    {
      scope: 'sessions:read',
      costs: 'no session can be read, so nothing works',
      grave: true,
      needed: true,
    },
    {
      scope: 'artifacts:read',
      costs: 'turn.settled has no list of artifacts',
      grave: false,
      needed: true,
    },
    {
      scope: 'tools:respond',
      costs: `${tools.length} ${tools.length === 1 ? 'tool' : 'tools'} cannot answer`,
      grave: true,
      needed: tools.length > 0,
    },
    {
      scope: 'sessions:write',
      costs: 'an answer that was not delivered cannot be sent again as a message',
      grave: false,
      needed: tools.some(({ onNotDelivered }) => onNotDelivered === 'resend'),
    },
  ]
  return wanted
    .filter(({ scope, needed }) => needed && !scopes.includes(scope))
    .map(({ scope, costs, grave }) => ({ scope, costs, grave }))
}
