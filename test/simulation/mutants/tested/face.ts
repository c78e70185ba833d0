import { tested, type Mutant, type NamedTest } from '../mutant.ts'

const NUMBERS = 'cli/numbers.test.ts'
const INFER: NamedTest = { file: 'library/infer.test.ts', isTypes: true }
const TYPES: NamedTest = { file: 'library/types.test.ts', isTypes: true }

/** What a new user meets: types, numbers, settings. */
export const FACE: readonly Mutant[] = [
  tested(
    INFER,
    'arguments of a tool are inferred as any',
    'sidecar/library/infer.ts',
    '? Flat<Typed<S> & Listed<S>',
    '? any & Flat<Typed<S> & Listed<S>',
  ),
  tested(
    INFER,
    'a property that is not required is there all the same',
    'sidecar/library/infer.ts',
    '[Name in keyof Properties as Name extends Required ? never : Name]?:',
    '[Name in keyof Properties as Name extends Required ? never : Name]:',
  ),
  tested(
    TYPES,
    'the artifacts of a turn are of no known type',
    'sidecar/library/events.ts',
    'artifacts: ArtifactResource[] | null',
    'artifacts: unknown[] | null',
  ),
  tested(
    TYPES,
    'the text of a message is of no known type',
    'sidecar/library/payload.ts',
    "'agent.message': { text?: string }",
    "'agent.message': { text?: unknown }",
  ),
  tested(
    { file: NUMBERS, only: 'a retry of dead letters' },
    'a retry is well though all die again',
    'cli/dead-letters.ts',
    'return dead === 0 ? 0 : 1',
    'return left',
  ),
  tested(
    { file: NUMBERS, only: 'pending for a paused handler' },
    'what is pending for a paused handler has a time',
    'cli/next-attempt.ts',
    "    if (state === 'paused') return 'paused'\n",
    '',
  ),
  tested(
    { file: NUMBERS, only: 'followed facts' },
    'facts that are followed have no id',
    'cli/events.ts',
    'renderTable(added, columns, terminal, false)',
    'renderTable(added, columns.slice(0, -1), terminal, false)',
  ),
  tested(
    { file: NUMBERS, only: 'includes its WAL' },
    'the size of a store is that of its main file',
    'sidecar/store/sqlite/inspect.ts',
    'bytes: sizeOf(file) + sizeOf(`${file}-wal`)',
    'bytes: sizeOf(file)',
  ),
  tested(
    { file: NUMBERS, only: 'counts the tools of modules' },
    'the check does not name the tools of modules',
    'cli/check/reach.ts',
    "...own.map(({ name }) => ok(`tool ${name}`, 'is in a module')),",
    "...own.slice(0, 0).map(({ name }) => ok(name, 'is in a module')),",
  ),
  tested(
    { file: 'cli/check.test.ts', only: 'distinguishes a port of another program' },
    'the check does not compare the configuration of a running sidecar',
    'cli/check/ports.ts',
    'fingerprint(config, specs) !== running',
    "running === ''",
  ),
  tested(
    { file: 'admin/attention.test.ts', only: 'in one entry' },
    'the entry of missing routes has another id for each of them',
    'sidecar/admin/routes/need.ts',
    "id: 'routes',",
    'id: `routes ${names}`,',
  ),
  tested(
    { file: 'cli/dev.test.ts', only: 'plays the tour, shows it' },
    'the tour counts what the ledger demands as the facts that it shows',
    'cli/dev/compare.ts',
    'facts: { made: tally.facts, delivered: tally.delivered }',
    'facts: { made: expected.length, delivered: Math.min(tally.delivered, expected.length) }',
  ),
  tested(
    { file: 'config/load.test.ts', only: 'name event types that are not known' },
    'an event type that is not known passes in silence',
    'core/event-type.ts',
    "if (pattern === '*' || EVENT_TYPES",
    "if (pattern.includes('') || EVENT_TYPES",
  ),
  tested(
    { file: 'cli/store-folder.test.ts', only: 'is beside the configuration' },
    'store.url starts at the working directory',
    'sidecar/config/resolve.ts',
    'path.resolve(store.base ?? base, file)',
    'path.resolve(store.base ?? process.cwd(), file)',
  ),
  tested(
    { file: 'cli/store-folder.test.ts', only: 'left in the working directory' },
    'a store that an earlier version left behind is not looked for',
    'sidecar/config/store-folder.ts',
    'if (old === undefined) return null',
    'if (old === undefined || old !== url.path) return null',
  ),
  tested(
    { file: 'cli/store-folder.test.ts', only: 'reads what is named from where it is called' },
    'npm start reads what is named in the folder of the package',
    'cli/working-folder.ts',
    'if (folder === null || env',
    "if (folder !== '' || env",
  ),
  tested(
    { file: 'cli/dev.test.ts', only: 'refuses a scenario that plays nothing' },
    'a scenario that plays nothing was played well',
    'cli/dev/tour.ts',
    '(scenario.sessions ?? []).length === 0)',
    '(scenario.sessions ?? []).length < 0)',
  ),
  tested(
    { file: 'e2e/without-tool.test.ts', only: 'status, console and log show the fix' },
    'a call that no tool answers has no advice',
    'sidecar/admin/routes/waiting.ts',
    "type === 'function_call' && name !== null && !answers(tools, name)",
    "type === 'function_call' && name === null",
  ),
  tested(
    { file: 'e2e/without-tool.test.ts', only: 'the log has' },
    'a call that no tool answers is not logged',
    'sidecar/engine.ts',
    '    logCallsWithoutTool(clock, log, toolNames.size > 0),\n',
    '',
  ),
]
