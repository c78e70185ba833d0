import type { Command } from 'commander'
import { listenAddress, wholeNumber, duration } from '../argument.ts'

/** The command `conform` and its options. */
export function declareConform(program: Command): Command {
  return program
    .command('conform')
    .summary('list where a deployment of the service differs from its interface')
    .description(
      'Tries the rules of the interface on a deployment, one by one, and prints which hold, which differ and which were not tried. Changes nothing without --write. Exit 1 if anything differs.',
    )
    .option('--base-url <url>', 'address of the deployment (required)')
    .option('--token-file <file>', 'access token of the service (required)')
    .option('--write', 'also try rules that create resources: sessions and more, all removed at the end')
    .option('--only <rules>', 'prefixes and ids of rules, for example SES,LIM-09')
    .option('--parallel <number>', 'checks at the same time', wholeNumber(1, 16), 4)
    .option('--timeout <duration>', 'for the whole run, 10m by default', duration(1000, 86_400_000))
    .option('--patience <duration>', 'for each task of the agent, 60s by default', duration(100, 3_600_000))
    .option('--webhook-url <url>', 'public address that leads to --webhook-listen, to see deliveries')
    .option(
      '--webhook-listen <host:port>',
      'where deliveries arrive, 127.0.0.1:8480 by default; a deployment on this machine needs neither',
      listenAddress,
    )
    .option('--verbose', 'a line for every rule, also for those that were not tried')
    .option('--json', 'for programs')
}
