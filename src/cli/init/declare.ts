import type { Command } from 'commander'
import { examples } from '../help.ts'

export function declareInit(program: Command): Command {
  return program
    .command('init')
    .summary('write a commented configuration')
    .description(
      'Writes a first configuration, and a secret for callbacks. On a terminal it asks for the missing options. It never overwrites a file.',
    )
    .argument('[file]', 'file to write', 'sidecar.yaml')
    .option('--base-url <url>', 'address of the Agent Session Service, without /v1')
    .option('--token-file <file>', 'file with its token; by default the environment variable SERVICE_TOKEN')
    .option('--handler-url <url>', 'address where your app receives callbacks')
    .option('--tool <name>', 'a function tool that your app answers')
    .option('--json', 'for programs: the written files')
    .addHelpText(
      'after',
      examples([
        'session-sidecar init',
        'session-sidecar init sidecar.yaml --base-url https://agents.example.com --handler-url http://127.0.0.1:3000/agent-events',
      ]),
    )
}
