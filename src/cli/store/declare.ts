import type { Command } from 'commander'
import { CONFIG, examples } from '../help.ts'

/** Commands for the database itself, whether a sidecar works with it or not. */
export function declareStore(program: Command): { check: Command; backup: Command; restore: Command } {
  const store = program.command('store').summary('check the database, copy it, or put a copy back')
  store.description(
    'Checks or copies the database of a sidecar, which may be running meanwhile; puts a copy back while none is.',
  )
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
  const restore = store
    .command('restore')
    .argument('<file>', 'the copy to put in place, as "store backup" made it; it stays where it is')
    .description(
      'Puts a copy in the place of the database, once it was read through. The former database is kept beside it. ' +
        'Refused while a sidecar uses the store.',
    )
    .option(...CONFIG)
    .option('--json', 'for programs')
    .addHelpText('after', examples(['session-sidecar store restore sidecar-backup.db -c sidecar.yaml']))
  return { check, backup, restore }
}
