export type Environment = Readonly<Record<string, string | undefined>>

/** `$${` is a literal `${`. */
const PLACEHOLDER = /\$\$\{|\$\{([^}]*)(\}?)/g
const INSIDE = /^([A-Za-z_][A-Za-z0-9_]*)(?::([-?])(.*))?$/s

export interface Expansion {
  text: string
  /** Descriptions of what cannot be expanded; empty when everything was. */
  faults: string[]
}

/**
 * Expands `${VAR}`, `${VAR:-default}` and `${VAR:?message}`, as a shell does. What is inserted is not expanded again.
 */
export function expand(text: string, env: Environment): Expansion {
  const faults: string[] = []
  const expanded = text.replace(PLACEHOLDER, (whole: string, inside: string | undefined, end: string) => {
    if (inside === undefined) return '${'
    const match = INSIDE.exec(inside)
    // In `${A:-${B}}` the default would end at the first brace, which is that of `${B}`.
    if (match === null || end === '' || inside.includes('${')) {
      faults.push(
        'a variable is written ${NAME}, ${NAME:-default} or ${NAME:?message}, not nested; a literal "${" is "$${"',
      )
      return whole
    }
    const [, name = '', operator, rest = ''] = match
    const value = Object.hasOwn(env, name) ? env[name] : undefined
    // As in a shell, `:` makes an empty variable count as one that is not set.
    if (operator === undefined ? value !== undefined : value !== undefined && value !== '') return value ?? ''
    if (operator === '-') return rest
    faults.push(
      operator === '?' && rest !== ''
        ? `the environment variable ${name} is not set: ${rest}`
        : `the environment variable ${name} is not set`,
    )
    return whole
  })
  return { text: expanded, faults }
}
