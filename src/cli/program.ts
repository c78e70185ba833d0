import { readFileSync } from 'node:fs'
import { Argument, Command, CommanderError } from 'commander'
import { nearest } from '../std/nearest.ts'
import { isObject, stringOf } from '../std/json.ts'
import { declareAdmin } from './admin/declare.ts'
import { declareConform } from './conform/declare.ts'
import type { Context, Run } from './context.ts'
import { declareDev, declareListen } from './dev/declare.ts'
import { declareEmulate } from './emulate/declare.ts'
import { CONFIG, examples } from './help.ts'
import { declareInit } from './init/declare.ts'
import type { ForwardOptions } from './dev/own-app.ts'
import { reportFailure } from './failure.ts'
import { declareStore } from './store/declare.ts'
import { processTerminal, type Terminal } from './terminal.ts'
import { asTyped, callersFolder } from './working-folder.ts'

/** Options of `dev` that make sense with the user's own app only. */
const OWN_APP = ['send', 'watch', 'tool', 'events', 'secretFile']
const SHELLS = ['bash', 'zsh', 'fish']

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

/** Without a command the demonstration runs; options alone belong to it. */
function withDefault(argv: readonly string[]): string[] {
  const [first] = argv
  const own = ['-h', '--help', '-V', '--version']
  if (first === undefined || (first.startsWith('-') && !own.includes(first))) return ['dev', ...argv]
  return [...argv]
}

/** A command that is not named: the list of commands shows its name, its arguments and whether it has options. */
class Brief extends Command {
  override createCommand(name?: string): Command {
    return new Brief(name)
  }
  override option(...given: unknown[]): this {
    if (this.options.length === 0) Reflect.apply(super.option, this, given)
    return this
  }
  override addHelpText(): this {
    return this
  }
}

/** All commands; of those that no word names, only what the list of commands shows. */
function commands(context: Context, words: readonly string[], done: (code: number) => void): Command {
  const { terminal } = context

  const program = new Command('session-sidecar')
  program.createCommand = (name) =>
    words.some((word) => word === name || word === 'completion') ? new Command(name) : new Brief(name)
  program
    .description(
      'Runs beside an app that uses the Agent Session Service: sends it one ordered, durable, deduplicated list of facts, and runs its function tools. Without a command: dev.',
    )
    .version(version(), '-V, --version', 'the version of this program')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.out(asTyped(text, context.env)),
      writeErr: (text) => terminal.err(asTyped(text, context.env)),
      outputError: (text, write) =>
        write(text.replace(/^error:/, terminal.paintErr(['bold', 'red'], 'error:'))),
      getOutHelpWidth: () => terminal.width ?? 100,
    })
    .showHelpAfterError('(session-sidecar --help lists the commands)')
    .addHelpText(
      'after',
      examples([
        'npm start',
        'session-sidecar run -c sidecar.yaml',
        'session-sidecar deliveries --status dead',
      ]),
    )
    .addHelpText(
      'after',
      '\nExit codes: 0 success, 1 failed, 2 unusable arguments or configuration, 3 token rejected.',
    )

  /** Binds a command to its function, which is imported when needed. */
  function does<O extends object>(
    command: Command,
    load: (options: O) => Promise<Run<O>>,
    required: string[] = [],
  ): void {
    command.action(async () => {
      const [stray] = command.commands.length > 0 ? command.args : []
      if (stray !== undefined) refuse(command, stray)
      const options = command.optsWithGlobals<O>()
      for (const name of required) {
        if (Object.hasOwn(options, name)) continue
        const option = command.options.find((one) => one.attributeName() === name)
        command.error(`error: option '${option?.long ?? name}' is required`)
      }
      const run = await load(options)
      // Opens standard error, which a command's log may write to: one that is closed or full ends no command.
      terminal.err('')
      done(await run(context, options, command.args))
    })
  }

  const dev = declareDev(program)
  does<Partial<ForwardOptions> & { json?: boolean; crash?: boolean }>(dev, async (options) => {
    const { forwardTo, json = false } = options
    const stray = forwardTo === undefined ? OWN_APP.find((name) => Object.hasOwn(options, name)) : undefined
    const flag = dev.options.find((one) => one.attributeName() === stray)
    if (flag !== undefined)
      dev.error(`error: option '${flag.long}' needs --forward-to, the address of your app`)
    // Loading takes a second or two, so print a line first.
    if (!json)
      terminal.err(
        terminal.paintErr(
          'dim',
          `Starting the service${forwardTo === undefined ? ', the sidecar and an app' : ' and the sidecar'} ...\n`,
        ),
      )
    if (options.crash === true) return (await import('./dev/crash.ts')).crash
    if (forwardTo === undefined) return (await import('./dev.ts')).dev
    return (await import('./dev/forward.ts')).forwardingTo({ ...options, forwardTo })
  })
  does(declareListen(program), async () => (await import('./listen.ts')).listen, ['forwardTo'])

  const run = program.command('run').summary('run the sidecar; the command of the container')
  run
    .description(
      'Runs the sidecar until SIGTERM or SIGINT, then finishes the work under way; a second signal ends it at once.',
    )
    .option(...CONFIG)
    .addHelpText('after', examples(['session-sidecar run -c sidecar.yaml']))
  does(run, async () => (await import('./run.ts')).run)

  const emulate = declareEmulate(program)
  does(emulate, async () => (await import('./emulate.ts')).emulate)

  const check = program.command('check').summary('list problems of a configuration and how to fix them')
  check
    .description(
      'Checks the configuration, the token and its scopes, routes, clocks, the store, handlers and tools. Exit 1 if there is a problem.',
    )
    .option(...CONFIG)
    .option('--json', 'for programs')
    .addHelpText('after', examples(['session-sidecar check -c sidecar.yaml']))
  does(check, async () => (await import('./check.ts')).check)

  does(declareConform(program), async () => (await import('./conform.ts')).conform, ['baseUrl', 'tokenFile'])

  const config = program.command('config').summary('print the schema, or the effective configuration')
  config.description('Prints the schema of the configuration, or the effective configuration.')
  const schema = config
    .command('schema')
    .description('Prints the JSON Schema (2020-12) of the configuration, for editors.')
    .option('--json', 'for programs: it is JSON in any case')
  does(schema, async () => (await import('./config.ts')).schema)
  const print = config.command('print').description('Prints the effective configuration, secrets redacted.')
  print.option(...CONFIG).option('--json', 'for programs: JSON in place of YAML')
  does(print, async () => (await import('./config.ts')).print)

  const store = declareStore(program)
  does(store.check, async () => (await import('./store.ts')).checkStore)
  does(store.backup, async () => (await import('./store.ts')).backup)
  does(store.restore, async () => (await import('./store.ts')).restore)

  declareAdmin(program, does)
  does(declareInit(program), async () => (await import('./init.ts')).init)
  const completion = program.command('completion').summary('completion of a shell')
  completion
    .addArgument(new Argument('<shell>', 'which').choices(SHELLS))
    .description('Prints a script with which a shell completes the commands and options of this program.')
    .addHelpText('after', examples(['source <(session-sidecar completion bash)']))
  does(completion, async () => {
    const { completion: print } = await import('./completion.ts')
    return (one, _options, args) => print(one, program, args)
  })
  inherit(program)
  return program
}

/** The version of the package, both from the source and from the build. */
function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  const parsed: unknown = JSON.parse(text)
  return isObject(parsed) ? (stringOf(parsed['version']) ?? '') : ''
}

/**
 * Subcommands report faults like the program; commands with subcommands report an unknown word
 * themselves.
 */
function inherit(parent: Command): void {
  for (const command of parent.commands) {
    command.copyInheritedSettings(parent)
    command.helpCommand(false)
    if (command.commands.length > 0) command.allowExcessArguments(true)
    inherit(command)
  }
}

function refuse(command: Command, word: string): never {
  const guess = nearest(
    word,
    command.commands.map((one) => one.name()),
  )
  command.error(`error: unknown command '${word}'${guess === null ? '' : `\n(Did you mean ${guess}?)`}`)
}
