import type { Command } from 'commander'
import { CONFIG, examples } from '../help.ts'

/** Commands for the database itself, whether a sidecar works with it or not. */
export function declareStore(program: Command): { check: Command; backup: Command } {
  const store = program.command('store').summary('look at the database, or copy it')
  store.description('Looks at the database of a sidecar, or copies it. It may be running meanwhile.')
  const check = store
    .command('check')
    .description(
      'Reads the whole database: its structure, and the checksum of every fact. Exit 1 if anything is wrong.',
    )
    .option(...CONFIG)
    .option('--json', 'for programs')
    .addHelpText('after', examples(['session-sidecar store check -c sidecar.yaml']))
  const backup = store
    .command('backup')
    .argument('<file>', 'where the copy goes; a file that is not there yet')
    .description('Copies the database, and reads the copy through.')
    .option(...CONFIG)
    .option('--json', 'for programs')
    .addHelpText('after', examples(['session-sidecar store backup sidecar-backup.db -c sidecar.yaml']))
  return { check, backup }
}
