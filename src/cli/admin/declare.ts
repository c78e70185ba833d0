import { Option, type Command } from 'commander'
import { pointInTime, seqOrTime, wholeNumber } from '../argument.ts'
import type { Does } from '../context.ts'
import { examples } from '../help.ts'

/** Commands that talk to a running sidecar. */
export function declareAdmin(program: Command, does: Does): void {
  readers(program, does)
  actions(program, does)
}

function readers(program: Command, does: Does): void {
  const status = reading(program, 'status', 'what needs attention; channels, queues, handlers, slots, token')
    .option('-v, --verbose', 'with all results of discovery: routes and headers of the service')
    .addHelpText('after', examples(['session-sidecar status', 'session-sidecar status --json']))
  does(remote(status), async () => (await import('../status.ts')).status)

  const events = reading(program, 'events', 'facts, the newest last')
    .option('-f, --follow', 'continue with new facts')
    .option('--type <type>', 'only this type')
    .option('--session <id>', 'only this session')
    .option('-n, --limit <number>', 'how many', wholeNumber(1, 100_000), 20)
    .addHelpText(
      'after',
      examples(['session-sidecar events --follow', 'session-sidecar events --type turn.settled --json']),
    )
  does(remote(events), async () => (await import('../events.ts')).events)

  const sessions = reading(program, 'sessions', 'sessions as last read')
    .option('--status <status>', 'only with this status')
    .option('-n, --limit <number>', 'how many', wholeNumber(1, 100_000), 20)
  sessions.addHelpText('after', examples(['session-sidecar sessions --status requires_action']))
  does(remote(sessions), async () => (await import('../sessions.ts')).sessions)

  const calls = reading(program, 'calls', 'function calls and their outcomes')
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
  calls.addHelpText('after', examples(['session-sidecar calls --state running']))
  does(remote(calls), async () => (await import('../calls.ts')).calls)

  const deliveries = reading(program, 'deliveries', 'callbacks pending, delivered and dead')
    .addOption(
      new Option('--status <status>', 'only with this status').choices(['pending', 'delivered', 'dead']),
    )
    .option('--handler <name>', 'only of this handler')
    .option('-n, --limit <number>', 'how many', wholeNumber(1, 100_000), 20)
    .addHelpText(
      'after',
      examples([
        'session-sidecar deliveries --status dead',
        'session-sidecar deliveries show dlv_1042_1',
        'session-sidecar deliveries retry --dead --handler app --dry-run',
      ]),
    )
  does(remote(deliveries), async () => (await import('../deliveries.ts')).deliveries)

  const show = deliveries.command('show').argument('<id>', 'of the delivery')
  show
    .description('Shows one delivery: each attempt, and the last failed response of the handler.')
    .addHelpText('after', examples(['session-sidecar deliveries show dlv_1042_1']))
  does(remote(show), async () => (await import('../delivery.ts')).showDelivery)

  const retry = deliveries.command('retry').argument('[id]', 'of the delivery')
  retry
    .description('Delivers again, through the real path: one delivery by its id, or all dead ones.')
    .option('--dead', 'all that are dead')
    .option('--handler <name>', 'with --dead: only of this handler')
    .option('--since <time>', 'with --dead: only facts since this time, or this long ago', pointInTime)
    .option('--dry-run', 'with --dead: only count them')
    .option('--wait', 'show the remaining count until none is pending; exit 1 if any is dead again')
    .addHelpText(
      'after',
      examples([
        'session-sidecar deliveries retry --dead --dry-run',
        'session-sidecar deliveries retry --dead --handler app --since 2h --wait',
      ]),
    )
  does(remote(retry), async () => (await import('../deliveries.ts')).retry)

  const tools = reading(program, 'tools', 'function tools, as declared on a session')
  tools.addHelpText('after', examples(['session-sidecar tools --json']))
  does(remote(tools), async () => (await import('../tools.ts')).tools)

  const handlers = reading(program, 'handlers', 'handlers and their backlog')
  handlers.addHelpText('after', examples(['session-sidecar handlers', 'session-sidecar handlers pause app']))
  does(remote(handlers), async () => (await import('../handlers.ts')).handlers)
  const pause = handlers.command('pause').argument('<handler>', 'its name')
  pause.description('Stops one handler; its backlog is kept.')
  does(remote(pause), async () => (await import('../handlers.ts')).pause)
  const resume = handlers.command('resume').argument('<handler>', 'its name')
  resume.description('Resumes one handler.')
  does(remote(resume), async () => (await import('../handlers.ts')).resume)
}

function actions(program: Command, does: Does): void {
  const replay = program.command('replay').summary('send past facts to one handler again')
  replay
    .description('Sends past facts that one handler selects to it again.')
    .option('--handler <name>', 'which handler (required)')
    .option('--from <seq-or-time>', 'a seq, a time, or how long ago (required)', seqOrTime)
    .option('--wait', 'show the remaining count until none is pending; exit 1 if any is dead')
    .addHelpText('after', examples(['session-sidecar replay --handler app --from 2h --wait']))
  does(remote(replay), async () => (await import('../replay.ts')).replay, ['handler', 'from'])

  const trigger = program.command('trigger').argument('<type>', 'of the fact, such as turn.settled')
  trigger
    .summary('send a test fact to a handler')
    .description(
      'Sends a signed test fact to a handler through the real path, and prints the outcome. The body has "test": true and its id begins with evt_test_; it is neither stored nor counted. Exit 1 if it was not accepted.',
    )
    .option('--handler <name>', 'which handler (required)')
    .option('--data <json>', 'replaces fields of the example data of the type')
    .addHelpText(
      'after',
      examples([
        'session-sidecar trigger turn.settled --handler app',
        `session-sidecar trigger turn.failed --handler app --data '{"turn":{"id":"turn_1","status":"failed"}}'`,
      ]),
    )
  does(remote(trigger), async () => (await import('../trigger.ts')).trigger, ['handler'])
}

function reading(program: Command, name: string, summary: string): Command {
  const text = `${summary[0]?.toUpperCase()}${summary.slice(1)}.`
  return program.command(name).summary(summary).description(text)
}

/** Options of every command that talks to a running sidecar. */
function remote(command: Command): Command {
  return command
    .option('--url <url>', 'admin address (or SIDECAR_ADMIN_URL; by default http://127.0.0.1:8481)')
    .option('-c, --config <file>', 'configuration with the address and token')
    .option('--token-file <file>', 'admin token (or SIDECAR_ADMIN_TOKEN, SIDECAR_ADMIN_TOKEN_FILE)')
    .option('--json', 'for programs')
}
