import type { Run } from './context.ts'

/** A command as it is declared in `commands.ts`; parsing, help and completion follow from it. */
export interface CommandSpec {
  name: string
  summary: string
  /** Default: the summary as a sentence. */
  description?: string
  arguments?: readonly ArgumentSpec[]
  options?: readonly OptionSpec[]
  examples?: readonly string[]
  commands?: readonly CommandSpec[]
  /** Imports its function when it is needed. Without one it only groups its commands. */
  load?: () => Promise<Run<never>>
}

/** `flags`: `<id>`, or `[id]` for one that may be left out. */
export interface ArgumentSpec {
  flags: string
  text: string
  choices?: readonly string[]
  default?: string
}

/** `flags`: `-c, --config <file>`. */
export interface OptionSpec {
  flags: string
  text: string
  choices?: readonly string[]
  /** Checks one value. `before`: the value of an earlier occurrence of the option. */
  parse?: (text: string, before: unknown) => unknown
  default?: OptionDefault
  required?: boolean
  /** Names of options that cannot be combined with it. */
  conflicts?: readonly string[]
}

/** `shown`: how help prints a value that is not a text. */
export interface OptionDefault {
  value: unknown
  shown?: string
}

export function option(
  flags: string,
  text: string,
  more: Omit<OptionSpec, 'flags' | 'text'> = {},
): OptionSpec {
  return { flags, text, ...more }
}
