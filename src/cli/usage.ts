/** A message of commander, and the cause and fix that are shown in its place; `$1` is the first group of the pattern. */
interface Wording {
  pattern: RegExp
  cause: string
  /** `$help` is the command that shows the help. Default: `SHOW_HELP`. */
  fix?: string
}

const SHOW_HELP = '"$help" shows how it is used'

const WORDINGS: readonly Wording[] = [
  { pattern: /^(unknown .+)\n\(Did you mean (?:one of )?(.+)\?\)$/, cause: '$1', fix: 'use $2' },
  { pattern: /^(unknown command .+)$/, cause: '$1', fix: '"$help" lists the commands' },
  { pattern: /^(unknown option .+)$/, cause: '$1', fix: '"$help" lists the options' },
  { pattern: /^option '(.+)' argument missing$/, cause: "option '$1' needs a value" },
  {
    pattern: /^option '(.+)' argument '(.*)' is invalid\. Allowed choices are (.+)\.$/s,
    cause: "option '$1' does not accept '$2'",
    fix: 'use one of $3',
  },
  {
    pattern: /^option '(.+)' argument '(.*)' is invalid\. (.+)$/s,
    cause: "option '$1' does not accept '$2'. $3",
  },
  {
    pattern: /^command-argument value '(.*)' is invalid for argument '(.+)'\. Allowed choices are (.+)\.$/s,
    cause: "argument '$2' does not accept '$1'",
    fix: 'use one of $3',
  },
  {
    pattern: /^command-argument value '(.*)' is invalid for argument '(.+)'\. (.+)$/s,
    cause: "argument '$2' does not accept '$1'. $3",
  },
  { pattern: /^missing required argument '(.+)'$/, cause: "argument '$1' is missing" },
  {
    pattern: /^too many arguments for '.+'\. Expected .+ but got \d+: (.+)\.$/s,
    cause: 'too many arguments: $1',
  },
  { pattern: /^(.+ cannot be used with .+)$/, cause: '$1', fix: 'remove one of the two' },
]

/**
 * Explains why a command line is unusable, in two lines: the cause, and the fix.
 * @param command - its words, such as `session-sidecar deliveries retry`
 */
export function explainUsage(text: string, command: string): string {
  const message = text.replace(/^error: /, '').trimEnd()
  const help = `${command} --help`
  for (const { pattern, cause, fix = SHOW_HELP } of WORDINGS) {
    if (!pattern.test(message)) continue
    const advice = message.replace(pattern, fix).replace('$help', help)
    return `error: ${message.replace(pattern, cause)}\n  fix: ${advice}\n`
  }
  return `error: ${message}\n  fix: ${SHOW_HELP.replace('$help', help)}\n`
}
