import { tested, type Mutant } from '../mutant.ts'

const LOG = 'store/log.test.ts'
const OPERATOR = 'e2e/operator.test.ts'
const OWNERSHIP = 'store/ownership.test.ts'

/** What operators do to the files of a store. */
export const FILES: readonly Mutant[] = [
  tested(
    { file: LOG, only: 'another file was made of' },
    'a log of any owner is taken',
    'sidecar/store/sqlite/wal.ts',
    'const related = log.owners.has(owner) || log.first.previous === owner',
    'const related = owner !== undefined',
  ),
  tested(
    { file: LOG, only: 'made earlier in the same run' },
    'a log that begins after its file is taken',
    'sidecar/store/sqlite/wal.ts',
    'commits >= log.first.commits - 1 && ',
    '',
  ),
  tested(
    { file: LOG, only: 'older than the file' },
    'a log that is older than its file is taken',
    'sidecar/store/sqlite/wal.ts',
    ' && commits <= log.last.commits',
    '',
  ),
  tested(
    { file: LOG, only: 'of the version before, beside a backup' },
    'a log of the version before is taken by any file',
    'sidecar/store/sqlite/wal.ts',
    'return main.version < OWNER_SCHEMA',
    'return true',
  ),
  tested(
    { file: LOG, only: 'without a file' },
    'an empty store takes the place of one whose log is left',
    'sidecar/store/sqlite/open.ts',
    '  if (!existsSync(path)) assertOwnLog(resolve(path))\n',
    '',
  ),
  tested(
    { file: OPERATOR, only: 'store restore repairs it' },
    'a restore leaves the former log beside the copy',
    'sidecar/store/sqlite/restore.ts',
    "  if (sides.includes('-wal')) renameSync(`${target}-wal`, `${aside}-wal`)\n",
    '',
  ),
  tested(
    { file: OPERATOR, only: 'what it refuses, what it keeps' },
    'a restore does not keep the former database',
    'sidecar/store/sqlite/restore.ts',
    "  if (sides.includes('')) keepName(target, aside)\n",
    '',
  ),
  tested(
    { file: OWNERSHIP, only: 'deleted: noticed' },
    'a deleted file is not noticed',
    'sidecar/store/sqlite/watch.ts',
    "if (now === null) return { loss: 'deleted', detail: `${file} was deleted` }",
    'if (now === null) return null',
  ),
  tested(
    { file: OWNERSHIP, only: 'replaced: noticed' },
    'a replaced file is not noticed',
    'sidecar/store/sqlite/watch.ts',
    'if (!same(now, opened))',
    'if (now.dev !== opened.dev)',
  ),
  tested(
    { file: OWNERSHIP, only: 'overwritten in place' },
    'a file that a copy was written over is not noticed',
    'sidecar/store/sqlite/watch.ts',
    '    if (overwritten()) {\n',
    '    if (loss !== null && overwritten()) {\n',
  ),
  tested(
    { file: OWNERSHIP, only: '-wal' },
    'a log that is deleted is not noticed',
    'sidecar/store/sqlite/watch.ts',
    'const side = sides.find((one) => !same(identityOf(one.path), one.opened))',
    "const side = sides.find((one) => one.path === '')",
  ),
  tested(
    { file: OWNERSHIP, only: 'deleted: noticed' },
    'a lost store takes what it is given',
    'sidecar/store/sqlite/store.ts',
    '    return lost\n  }\n',
    "    return lost?.kind === 'lost' ? null : lost\n  }\n",
  ),
  tested(
    { file: OWNERSHIP, only: 'deleted: noticed' },
    'a deleted file is not written back',
    'sidecar/store/sqlite/watch.ts',
    "if (loss === 'deleted' || loss === 'replaced') return",
    "if (loss === 'replaced') return",
  ),
  tested(
    { file: OPERATOR, only: 'the database deleted under' },
    'readyz is 200 though the store is lost',
    'sidecar/status.ts',
    "if (lost !== null) return { name: 'store', ok: false, detail: lost.message }",
    "if (lost !== null) return { name: 'store', ok: true, detail: lost.message }",
  ),
  tested(
    { file: OPERATOR, only: 'the database deleted under' },
    'webhooks are acknowledged though the store is lost',
    'sidecar/start.ts',
    '  void lost.promise.then(() => engine.webhooks.lose())\n',
    '',
  ),
]
