import { Argument, Command, CommanderError, Option } from 'commander'
import { nearest } from '../std/nearest.ts'
import { VERSION } from '../sidecar/version.ts'
import type { ArgumentSpec, CommandSpec, OptionSpec } from './command.ts'
import { COMMANDS } from './commands.ts'
import type { Context } from './context.ts'
import { reportFailure } from './failure.ts'
import { processTerminal, type Terminal } from './terminal.ts'
import { explainUsage } from './usage.ts'
import { asTyped, callersFolder } from './working-folder.ts'

/** Unusable arguments. */
const USAGE = 2

/** Runs the command line of this process, in the folder where it was called. */
export async function main(process: NodeJS.Process): Promise<void> {
  const called = callersFolder(process.env, process.cwd())
  if (called !== null) process.chdir(called)
  process.exitCode = await runProgram(process.argv.slice(2), processTerminal(process), process.env)
}

/**
 * Parses a command line and runs the command. Only that command is imported, so that help is fast.
 * @returns the exit code: 0 success, 1 failed, 2 unusable arguments or configuration, 3 token
 * rejected.
 */
async function runProgram(argv: readonly string[], terminal: Terminal, env: Context['env']): Promise<number> {
  let code = 0
  const words = withDefault(argv)
  const program = commands({ terminal, env }, words, (result) => {
    code = result
  })
  try {
    await program.parseAsync(words, { from: 'user' })
    return code
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE
    return reportFailure(error, {
      paintErr: terminal.paintErr,
      err: (text) => terminal.err(asTyped(text, env)),
    })
  }
}

/** Without a command the demonstration runs, with the options that were given. */
function withDefault(argv: readonly string[]): string[] {
  const [first] = argv
  const own = ['-h', '--help', '-V', '--version']
  if (first === undefined || (first.startsWith('-') && !own.includes(first))) return ['dev', ...argv]
  return [...argv]
}

/** All commands. Only the named one is complete; the others have only what the list of commands shows. */
function commands(context: Context, words: readonly string[], done: (code: number) => void): Command {
  const { terminal, env } = context
  const program = new Command('session-sidecar')
    .description(
      'Runs beside an app that uses the Agent Session Service. It sends the app facts about its sessions, in order and each at least once, and runs its function tools. Without a command, it runs dev.',
    )
    .version(VERSION, '-V, --version', 'the version of this program')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.out(asTyped(text, env)),
      writeErr: (text) => terminal.err(asTyped(text, env)),
      getOutHelpWidth: () => terminal.width ?? 100,
    })
    .addHelpText('after', examples(EXAMPLES))
    .addHelpText(
      'after',
      '\nExit codes: 0 success, 1 failed, 2 unusable arguments or configuration, 3 token rejected.',
    )

  explainErrors(program, 'session-sidecar')

  function explainErrors(command: Command, words: string): void {
    command.configureOutput({
      outputError: (text, write) =>
        write(explainUsage(text, words).replace(/^error:/, terminal.paintErr(['bold', 'red'], 'error:'))),
    })
  }

  function add(parent: Command, spec: CommandSpec, isNamed: boolean): void {
    const command = parent.command(spec.name).summary(spec.summary)
    const isOfProgram = parent === program
    explainErrors(command, `session-sidecar ${isOfProgram ? '' : `${parent.name()} `}${spec.name}`)
    command.helpCommand(false)
    for (const one of spec.arguments ?? []) command.addArgument(argumentOf(one))
    // The list of commands shows whether a command has options, not which.
    const { options = [], commands: inner = [] } = spec
    for (const one of isNamed ? options : options.slice(0, 1)) command.addOption(optionOf(one))
    if (!isNamed) return
    command.description(spec.description ?? sentence(spec.summary))
    if (spec.examples !== undefined) command.addHelpText('after', examples(spec.examples))
    for (const one of inner) add(command, one, true)
    command.allowExcessArguments(inner.length > 0)
    command.action(async () => {
      const [stray] = inner.length > 0 ? command.args : []
      if (stray !== undefined) refuse(command, stray)
      if (spec.load === undefined) return command.help({ error: true })
      const given = command.optsWithGlobals<never>()
      const missing = command.options.find(
        (one, index) => options[index]?.required === true && !Object.hasOwn(given, one.attributeName()),
      )
      if (missing !== undefined) command.error(`error: option '${missing.long}' is required`)
      const run = await spec.load()
      // Opens standard error, to which the command may log, and handles its errors: a closed or full standard error
      // ends no command.
      terminal.err('')
      done(await run(context, given, command.args))
    })
  }

  for (const spec of COMMANDS) add(program, spec, words.includes(spec.name))
  return program
}

const EXAMPLES = [
  'session-sidecar dev',
  'session-sidecar run -c sidecar.yaml',
  'session-sidecar deliveries --status dead',
]

function examples(lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join('\n')}`
}

function argumentOf({ flags, text, choices, default: value }: ArgumentSpec): Argument {
  const argument = new Argument(flags, text)
  if (choices !== undefined) argument.choices(choices)
  return value === undefined ? argument : argument.default(value)
}

function optionOf({ flags, text, choices, parse, default: preset, conflicts = [] }: OptionSpec): Option {
  const option = new Option(flags, text).conflicts([...conflicts])
  if (choices !== undefined) option.choices(choices)
  if (parse !== undefined) option.argParser(parse)
  return preset === undefined ? option : option.default(preset.value, preset.shown)
}

function sentence(text: string): string {
  return `${text[0]?.toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`
}

function refuse(command: Command, word: string): never {
  const guess = nearest(
    word,
    command.commands.map((one) => one.name()),
  )
  command.error(`error: unknown command '${word}'${guess === null ? '' : `\n(Did you mean ${guess}?)`}`)
}
