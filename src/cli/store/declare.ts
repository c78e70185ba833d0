import type { Command } from 'commander'
import { CONFIG, examples } from '../help.ts'

/** Commands for the database itself, with or without a running sidecar. */
export function declareStore(program: Command): { check: Command; backup: Command; restore: Command } {
  const store = program.command('store').summary('check the database, copy it, or restore a copy')
  store.description(
    'Checks or copies the database of a sidecar, which may be running; restores a copy while none is running.',
  )
  const check = store
    .command('check')
    .description(
      'Reads the whole database: its structure, and the checksum of every fact. Exit 1 on any fault.',
    )
    .option(...CONFIG)
    .option('--json', 'for programs')
    .addHelpText('after', examples(['session-sidecar store check -c sidecar.yaml']))
  const backup = store
    .command('backup')
    .argument('<file>', 'the file to create')
    .description('Copies the database, and checks the copy.')
    .option(...CONFIG)
    .option('--json', 'for programs')
    .addHelpText('after', examples(['session-sidecar store backup sidecar-backup.db -c sidecar.yaml']))
  const restore = store
    .command('restore')
    .argument('<file>', 'the copy to restore, made by "store backup"; the file is kept')
    .description(
      'Replaces the database with a copy, after a check of the copy. The former database is kept beside it. ' +
        'Refused while a sidecar uses the store.',
    )
    .option(...CONFIG)
    .option('--json', 'for programs')
    .addHelpText('after', examples(['session-sidecar store restore sidecar-backup.db -c sidecar.yaml']))
  return { check, backup, restore }
}
