import { readFileSync } from 'node:fs'
import { Command, CommanderError, Option } from 'commander'
import { nearest } from '../core/nearest.ts'
import { isObject, stringOf } from '../core/json.ts'
import { pointInTime, seqOrTime, wholeNumber } from './argument.ts'
import { declareConform } from './conform/declare.ts'
import type { Context } from './context.ts'
import { declareEmulate } from './emulate/declare.ts'
import { CONFIG, examples } from './help.ts'
import { reportFailure } from './failure.ts'
import { declareStore } from './store/declare.ts'
import type { Terminal } from './terminal.ts'

/** Unusable arguments. */
const USAGE = 2

/**
 * Reads a command line and does what it says. Only the command that was asked for is imported, so that help is there at
 * once.
 * @returns the exit code: 0 fine, 1 failed, 2 unusable arguments or configuration, 3 token rejected.
 */
export async function runProgram(
  argv: readonly string[],
  terminal: Terminal,
  env: Context['env'],
): Promise<number> {
  let code = 0
  const program = commands({ terminal, env }, (result) => {
    code = result
  })
  try {
    await program.parseAsync(withDefault(argv), { from: 'user' })
    return code
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE
    return reportFailure(error, terminal)
  }
}

/** Without a command the demonstration runs; options alone belong to it. */
function withDefault(argv: readonly string[]): string[] {
  const [first] = argv
  const own = ['-h', '--help', '-V', '--version']
  if (first === undefined || (first.startsWith('-') && !own.includes(first))) return ['dev', ...argv]
  return [...argv]
}

type Run<O> = (context: Context, options: O, args: string[]) => Promise<number>

function commands(context: Context, done: (code: number) => void): Command {
  const { terminal } = context

  const program = new Command('session-sidecar')
    .description(
      'Stands beside an app that uses the Agent Session Service: hands it one ordered, durable, deduplicated list of facts, and answers function tools exactly once. Without a command: dev.',
    )
    .version(version(), '-V, --version', 'the version of this program')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.out(text),
      writeErr: (text) => terminal.err(text),
      outputError: (text, write) =>
        write(text.replace(/^error:/, terminal.paintErr(['bold', 'red'], 'error:'))),
      getOutHelpWidth: () => terminal.width ?? 100,
    })
    .showHelpAfterError('(session-sidecar --help shows what there is)')
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
      '\nExit codes: 0 fine, 1 failed, 2 unusable arguments or configuration, 3 token rejected.',
    )

  /** Binds a command to the function that does it, which is imported when it is needed. */
  function does<O extends object>(
    command: Command,
    load: () => Promise<Run<O>>,
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
      const run = await load()
      done(await run(context, options, command.args))
    })
  }

  const dev = program.command('dev').summary('emulator, sidecar and an example app in one, playing a tour')
  dev
    .description(
      'Runs an emulator of the service, a sidecar and a small example app, with no account and no configuration, and shows each fact, callback and tool answer as it happens.',
    )
    .option('--once', 'end after the tour: exit 0 only if everything was delivered and answered')
    .option('--scenario <file>', 'what the sessions do instead of the built-in tour')
    .addHelpText('after', examples(['npm start', 'npm start -- --once']))
  does(dev, async () => (await import('./dev.ts')).dev)

  const run = program.command('run').summary('the sidecar; what the container runs')
  run
    .description(
      'Runs the sidecar until SIGTERM or SIGINT, then finishes what is under way; a second signal ends it at once.',
    )
    .option('-c, --config <file>', CONFIG)
    .addHelpText('after', examples(['session-sidecar run -c sidecar.yaml']))
  does(run, async () => (await import('./run.ts')).run, ['config'])

  const emulate = declareEmulate(program)
  does(emulate, async () => (await import('./emulate.ts')).emulate)

  const check = program.command('check').summary('doctor: what would not work, and the mend')
  check
    .description(
      'Looks at the configuration, the token and its scopes, routes, clocks, the store, handlers and tools. Exit 1 if anything would not work.',
    )
    .option('-c, --config <file>', CONFIG)
    .option('--json', 'for programs')
    .addHelpText('after', examples(['session-sidecar check -c sidecar.yaml']))
  does(check, async () => (await import('./check.ts')).check, ['config'])

  does(declareConform(program), async () => (await import('./conform.ts')).conform, ['baseUrl', 'tokenFile'])

  const config = program.command('config').summary('the schema of the configuration; the one in force')
  config.description('What a configuration may say, and what one says.')
  const schema = config
    .command('schema')
    .description('Prints the JSON Schema (2020-12) of the configuration, for editors.')
  does(schema, async () => (await import('./config.ts')).schema)
  const print = config
    .command('print')
    .description('Prints the effective configuration as YAML, secrets redacted.')
  print.option('-c, --config <file>', CONFIG)
  does(print, async () => (await import('./config.ts')).print, ['config'])

  const store = declareStore(program)
  does(store.check, async () => (await import('./store.ts')).checkStore, ['config'])
  does(store.backup, async () => (await import('./store.ts')).backup, ['config'])

  readers(program, does)
  actions(program, does)
  inherit(program)
  return program
}

/** The package's own, both from the source and from what was built of it. */
function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  const parsed: unknown = JSON.parse(text)
  return isObject(parsed) ? (stringOf(parsed['version']) ?? '') : ''
}

type Does = <O extends object>(command: Command, load: () => Promise<Run<O>>, required?: string[]) => void

/** Commands that read a running sidecar. */
function readers(program: Command, does: Does): void {
  const status = reading(program, 'status', 'channels, queues, slots and token of a running sidecar')
  does(remote(status), async () => (await import('./status.ts')).status)

  const events = reading(program, 'events', 'facts, the newest last')
    .option('-f, --follow', 'go on with what comes')
    .option('--type <type>', 'only this type')
    .option('--session <id>', 'only this session')
    .option('-n, --limit <number>', 'how many', wholeNumber(1, 100_000), 20)
    .addHelpText(
      'after',
      examples(['session-sidecar events --follow', 'session-sidecar events --type turn.settled --json']),
    )
  does(remote(events), async () => (await import('./events.ts')).events)

  const sessions = reading(program, 'sessions', 'sessions as last read')
    .option('--status <status>', 'only with this status')
    .option('-n, --limit <number>', 'how many', wholeNumber(1, 100_000), 20)
  does(remote(sessions), async () => (await import('./sessions.ts')).sessions)

  const calls = reading(program, 'calls', 'function calls and what became of them')
    .addOption(
      new Option('--state <state>', 'only in this state').choices([
        'received',
        'running',
        'finished',
        'answered',
        'not_delivered',
        'failed',
      ]),
    )
    .option('--session <id>', 'only of this session')
    .option('-n, --limit <number>', 'how many', wholeNumber(1, 100_000), 20)
  does(remote(calls), async () => (await import('./calls.ts')).calls)

  const deliveries = reading(program, 'deliveries', 'callbacks owed, made and given up')
    .addOption(
      new Option('--status <status>', 'only with this status').choices(['pending', 'delivered', 'dead']),
    )
    .option('--handler <name>', 'only of this handler')
    .option('-n, --limit <number>', 'how many', wholeNumber(1, 100_000), 20)
    .addHelpText(
      'after',
      examples([
        'session-sidecar deliveries --status dead',
        'session-sidecar deliveries retry --dead --handler app --dry-run',
      ]),
    )
  does(remote(deliveries), async () => (await import('./deliveries.ts')).deliveries)

  const retry = deliveries.command('retry').argument('[id]', 'of the delivery')
  retry
    .description('Delivers again, through the real path: one delivery by its id, or all dead ones.')
    .option('--dead', 'all that are dead')
    .option('--handler <name>', 'with --dead: only of this handler')
    .option('--since <time>', 'with --dead: only facts since this time, or this long ago', pointInTime)
    .option('--dry-run', 'with --dead: only count them')
  does(remote(retry), async () => (await import('./deliveries.ts')).retry)

  const handlers = reading(program, 'handlers', 'handlers and their backlog')
  does(remote(handlers), async () => (await import('./handlers.ts')).handlers)
  const pause = handlers.command('pause').argument('<handler>', 'its name')
  pause.description('Stops one handler; its backlog is kept.')
  does(remote(pause), async () => (await import('./handlers.ts')).pause)
  const resume = handlers.command('resume').argument('<handler>', 'its name')
  resume.description('Goes on with one handler.')
  does(remote(resume), async () => (await import('./handlers.ts')).resume)
}

function actions(program: Command, does: Does): void {
  const replay = program.command('replay').summary('hand one handler past facts again')
  replay
    .description('Hands one handler past facts again, those that it wants.')
    .option('--handler <name>', 'which handler (required)')
    .option('--from <seq-or-time>', 'a seq, a time, or how long ago (required)', seqOrTime)
    .addHelpText('after', examples(['session-sidecar replay --handler app --from 2h']))
  does(remote(replay), async () => (await import('./replay.ts')).replay, ['handler', 'from'])
}

function reading(program: Command, name: string, summary: string): Command {
  const text = `${summary[0]?.toUpperCase()}${summary.slice(1)}.`
  return program.command(name).summary(summary).description(text)
}

/** Options of every command that talks to a running sidecar. */
function remote(command: Command): Command {
  return command
    .option('--url <url>', 'admin address (or SIDECAR_ADMIN_URL; by default http://127.0.0.1:8481)')
    .option('-c, --config <file>', 'configuration to take address and token from')
    .option('--token-file <file>', 'admin token (or SIDECAR_ADMIN_TOKEN, SIDECAR_ADMIN_TOKEN_FILE)')
    .option('--json', 'for programs')
}

/** Subcommands report faults as the program does, and commands with subcommands tell a stray word themselves. */
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
