import { Option, type Command } from 'commander'
import { OPEN_PARTS } from '../../emulator/open-part.ts'
import { listenAddress } from '../argument.ts'
import { examples } from '../help.ts'

export function declareEmulate(program: Command): Command {
  const emulate = program.command('emulate').summary('the emulator of the service alone')
  emulate
    .description('Runs the emulator of the Agent Session Service.')
    .option(
      '--listen <host:port>',
      'listen address; port 0 chooses a free one',
      listenAddress,
      listenAddress('127.0.0.1:4010'),
    )
    .option('--scenario <file>', 'steps of the sessions; by default each line of a message is a step')
    .option('--token <token>', 'the default token', 'svc_pat_dev')
    .addOption(
      new Option('--open-details <profile>', 'choice for the details that the interface leaves open')
        .choices(['a', 'b'])
        .default('a'),
    )
    .addOption(
      new Option('--leave-out <parts...>', 'parts to remove from the description').choices(OPEN_PARTS),
    )
    .option('--allow-http-webhooks', 'accept http addresses of webhooks on loopback')
    .option(
      '--allow-host <names...>',
      'further host names that its own routes accept, beside addresses and names without a dot',
    )
    .option('--data <file>', 'store its state in this file, across restarts and kills')
    .option('--json', 'for programs: address and token as one line')
    .addHelpText(
      'after',
      examples(['session-sidecar emulate', 'session-sidecar emulate --listen 127.0.0.1:0 --open-details b']),
    )
  // Commander would show the parsed address as an object.
  emulate.options
    .find((option) => option.long === '--listen')
    ?.default(listenAddress('127.0.0.1:4010'), '127.0.0.1:4010')
  return emulate
}
