import type { Command } from 'commander'
import { examples } from '../help.ts'

export function declareInit(program: Command): Command {
  return program
    .command('init')
    .summary('write a commented configuration')
    .description(
      'Writes a configuration to begin with, and a secret for callbacks. On a terminal it asks for what no option gives. It never overwrites a file.',
    )
    .argument('[file]', 'where to', 'sidecar.yaml')
    .option('--base-url <url>', 'address of the Agent Session Service, without /v1')
    .option('--token-file <file>', 'holds its token; without it the environment does, in SERVICE_TOKEN')
    .option('--handler-url <url>', 'where your app takes callbacks')
    .option('--tool <name>', 'a function tool that your app answers')
    .option('--json', 'for programs: what was written')
    .addHelpText(
      'after',
      examples([
        'session-sidecar init',
        'session-sidecar init sidecar.yaml --base-url https://agents.example.com --handler-url http://127.0.0.1:3000/agent-events',
      ]),
    )
}
