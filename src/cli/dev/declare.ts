import { Option, type Command } from 'commander'
import { appAddress, toolAddress } from '../argument.ts'
import { examples } from '../help.ts'

/** Where requests to the user's own app go, for `dev` and `listen`. */
function declareForwarding(command: Command): Command {
  return command
    .option(
      '--forward-to <url>',
      'address of your app: callbacks go to it, calls of a function NAME to /tools/NAME of the same host',
      appAddress,
    )
    .option(
      '--tool <name=url>',
      'another address for the calls of one function; may be repeated',
      toolAddress,
    )
    .option('--events <types...>', 'the types to forward, such as "turn.*"; by default all')
    .option(
      '--secret-file <file>',
      'the secret of the signatures, made if it is missing; by default ~/.config/agent-session-sidecar/callback-secret.txt',
    )
}

export function declareDev(program: Command): Command {
  const dev = program.command('dev').summary('emulator, sidecar and an example app, or your own, in one')
  dev
    .description(
      'Runs an emulator of the service, a sidecar and a small example app, with no account and no configuration, and shows each fact, callback and tool answer as it happens. With --forward-to your own app takes the place of the example.',
    )
    .option('--once', 'end after what was sent: exit 0 only if everything was delivered and answered')
    .addOption(
      new Option(
        '--crash',
        'kill the sidecar in the middle of its work, and show what was stored and what is repeated',
      ).conflicts(['forwardTo', 'once', 'scenario']),
    )
    .option('--scenario <file>', 'scenario to run instead of the built-in tour')
  return declareForwarding(dev)
    .option(
      '--send <text>',
      'send this message to a new session; the command then keeps running; with --once it ends',
    )
    .option('--watch', 'play the scenario again when its file changes')
    .option('--json', 'for programs: one JSON line per event')
    .addHelpText(
      'after',
      examples([
        'npm start',
        'npm start -- --once',
        'npm start -- dev --crash',
        'npm start -- dev --forward-to http://localhost:3000/agent-events --send "call lookup_order {}"',
        'npm start -- dev --forward-to localhost:3000 --tool lookup_order=localhost:4000/orders --once --send Hello',
        'npm start -- dev --forward-to localhost:3000 --scenario orders.yaml --watch',
      ]),
    )
}

export function declareListen(program: Command): Command {
  const listen = program
    .command('listen')
    .summary('forward what happens at the service to your app on this machine')
  listen
    .description(
      'Follows the service from now on, and forwards callbacks and function calls to your own app, without a configuration file. What it stores is in a temporary folder, which is removed at the end. Variables SIDECAR_… set further keys, as for run.',
    )
    .option('--base-url <url>', 'address of the service; or SIDECAR_SERVICE__BASE_URL')
    .option(
      '--token-file <file>',
      'file with its access token; or SIDECAR_SERVICE__TOKEN, or SIDECAR_SERVICE__TOKEN_FILE',
    )
  return declareForwarding(listen)
    .option('--no-tools', 'leave all function calls to others')
    .option('--json', 'for programs: one JSON line per event')
    .addHelpText(
      'after',
      examples([
        'session-sidecar listen --base-url https://agents.example.com --token-file token.txt --forward-to localhost:3000',
        'SIDECAR_SCOPE__METADATA=\'{"app":"billing"}\' session-sidecar listen … forwards only these sessions',
      ]),
    )
}
