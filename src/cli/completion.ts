import { option, type CommandSpec } from './command.ts'
import type { Run } from './context.ts'

/** A position on the command line, and the words that may follow. */
interface Place {
  /** Commands so far, joined by a space; empty for none. */
  path: string
  /** Words of which one must be chosen. */
  commands: string[]
  options: string[]
}

/** The values of an option: its choices, or a file (null). */
type Values = Map<string, readonly string[] | null>

const SCRIPTS: Readonly<Record<string, (places: Place[], values: Values) => string>> = {
  bash: bashScript,
  zsh: (places, values) =>
    `#compdef session-sidecar\nautoload -Uz bashcompinit && bashcompinit\n${bashScript(places, values)}`,
  fish: fishScript,
}

/** Prints the completion of a shell, generated from the declared commands. */
export function completionOf(commands: readonly CommandSpec[]): Run<object> {
  return ({ terminal }, _options, [shell = '']) => {
    const values: Values = new Map()
    const version = option('-V, --version', '')
    const places = placesOf({ commands, options: [version] }, '', values)
    terminal.out(SCRIPTS[shell]?.(places, values) ?? '')
    return Promise.resolve(0)
  }
}

function placesOf(
  { commands = [], arguments: positional = [], options = [] }: Partial<CommandSpec>,
  path: string,
  values: Values,
): Place[] {
  for (const { flags, choices } of options) {
    if (choices === undefined && !flags.includes('<file>')) continue
    for (const [name] of flags.matchAll(/--?[\w-]+/g)) values.set(name, choices ?? null)
  }
  return [
    {
      path,
      commands: [...commands.map(({ name }) => name), ...positional.flatMap(({ choices = [] }) => choices)],
      options: [...options.flatMap(({ flags }) => /--[\w-]+/.exec(flags) ?? []), '--help'],
    },
    ...commands.flatMap((one) => placesOf(one, `${path} ${one.name}`.trim(), values)),
  ]
}

/**
 * One script for all versions of bash and for zsh. It does not use the names `path` and `words`, which zsh reserves.
 */
function bashScript(places: Place[], values: Values): string {
  const offered = places.map(
    ({ path, commands, options }) => `    '${path}') offered='${[...commands, ...options].join(' ')}' ;;`,
  )
  const behind = [...values].map(([option, choices]) => {
    const generate = choices === null ? '-f' : `-W '${choices.join(' ')}'`
    return `    ${option}) COMPREPLY=($(compgen ${generate} -- "$word")); return ;;`
  })
  return `# Completion of session-sidecar. In ~/.bashrc or ~/.zshrc: source <(session-sidecar completion bash)
_session_sidecar() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" place='' offered='' next i
  COMPREPLY=()
  case "$before" in
${behind.join('\n')}
  esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="\${place:+$place }\${COMP_WORDS[i]}"
    case "$next" in
      ${places
        .filter(({ path }) => path !== '')
        .map(({ path }) => `'${path}'`)
        .join('|')}) place="$next" ;;
    esac
  done
  case "$place" in
${offered.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$offered" -- "$word"))
}
complete -o filenames -F _session_sidecar session-sidecar
`
}

function fishScript(places: Place[], values: Values): string {
  const lines = places.flatMap(({ path, commands, options }) => {
    const parts = path.split(' ').filter((part) => part !== '')
    const seen = parts.map((part) => `__fish_seen_subcommand_from ${part}`)
    const none = commands.length === 0 ? [] : [`not __fish_seen_subcommand_from ${commands.join(' ')}`]
    const here = [...seen, ...none].join('; and ')
    const when = here === '' ? '' : ` -n '${here}'`
    return [
      ...commands.map((name) => `complete -c session-sidecar -f${when} -a ${name}`),
      ...options.map(
        (option) =>
          `complete -c session-sidecar${when} -l ${option.slice(2)}${fishValue(values.get(option))}`,
      ),
    ]
  })
  return `# Completion of session-sidecar. In ~/.config/fish/completions/session-sidecar.fish\n${lines.join('\n')}\n`
}

function fishValue(choices: readonly string[] | null | undefined): string {
  if (choices === undefined) return ''
  return choices === null ? ' -r -F' : ` -x -a '${choices.join(' ')}'`
}
