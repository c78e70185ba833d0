import type { Config } from '../sidecar/config/config.ts'
import { renderFault } from '../sidecar/config/fault.ts'
import { loadConfig } from '../sidecar/config/load.ts'
import { expiryFinding } from './check/expiry.ts'
import { ok, warn, type Finding } from './check/finding.ts'
import type { Context } from './context.ts'
import { jsonLine, pad, visible, type Paint } from './terminal.ts'
import { count } from './text.ts'
import { asTyped } from './working-folder.ts'

/**
 * The command `check`, which takes at most five seconds, or ten with modules. A configuration with faults ends it at
 * once, as it would end `run`: exit 2.
 */
export async function check(
  { terminal, env }: Context,
  options: { config: string; json?: boolean },
): Promise<number> {
  const { config, warnings } = await loadConfig(options.config, env, Date.now())
  const found: Finding[] = []
  const width = widthOf(config)
  const print = (...findings: Finding[]): void => {
    found.push(...findings)
    for (const finding of findings)
      terminal.out(
        options.json === true
          ? jsonLine(finding)
          : asTyped(renderFinding(finding, width, terminal.paint), env),
      )
  }
  print(
    configFinding(options.config, config),
    ...warnings.map((one) =>
      warn(
        'configuration',
        renderFault(one),
        `change ${one.path || 'this key'}; config/sidecar.yaml explains it`,
      ),
    ),
    expiryFinding(config, Date.now()),
  )
  // Findings are printed as soon as possible, but always in this order.
  for (const look of await lookAround(config, options.config)) print(...(await look))
  if (options.json !== true) terminal.out(asTyped(renderEnd(found), env))
  return found.some(({ state }) => state === 'fail') ? 1 : 0
}

/**
 * Starts all checks at the same time. Their modules are imported here, because they take as long to load as the
 * configuration.
 */
async function lookAround(config: Config, file: string): Promise<Promise<Finding[]>[]> {
  const [{ checkService }, { checkPorts }, { checkTargets }, { checkStore }, { readSpecs }] =
    await Promise.all([
      import('./check/service.ts'),
      import('./check/ports.ts'),
      import('./check/reach.ts'),
      import('./check/store.ts'),
      import('./check/specs.ts'),
    ])
  let read: ReturnType<typeof readSpecs> | null = null
  // Modules are imported only where a check needs them, and once.
  const specs = (): ReturnType<typeof readSpecs> => (read ??= readSpecs(config))
  const looks = [
    checkService(config),
    checkPorts(config, specs),
    checkTargets(config, specs),
    checkStore(config, file),
  ]
  // A failed check is reported when it is printed.
  for (const look of looks) look.catch(() => undefined)
  return looks
}

function configFinding(file: string, { handlers, tools }: Config): Finding {
  // The tools of a module are known only after its import; then each of them gets its own line.
  const modules = new Set(handlers.flatMap(({ target }) => (target.kind === 'module' ? target.path : [])))
  const brought = modules.size === 0 ? [] : [`tools of ${count(modules.size, 'module')}`]
  const own = tools.length === 0 && modules.size > 0 ? [] : [count(tools.length, 'tool')]
  const summary = `${file}: ${[count(handlers.length, 'handler'), ...own, ...brought].join(', ')}`
  return handlers.length + tools.length > 0
    ? ok('configuration', summary)
    : warn('configuration', `${summary}: facts are stored but not delivered`, 'add a handler')
}

const MARKS = { ok: ['green', '✓'], warn: ['yellow', '!'], fail: ['red', '✗'] } as const

/** The longest subject that every check has. */
const LONGEST = 'route listArtifacts'

/** Width of the subjects, known before the first line is printed. */
function widthOf({ handlers, tools }: Config): number {
  const own = [...handlers.map(({ name }) => `handler ${name}`), ...tools.map(({ name }) => `tool ${name}`)]
  return Math.max(LONGEST.length, ...own.map((subject) => subject.length))
}

/** One line, with the fix. */
function renderFinding({ subject, state, message, fix }: Finding, width: number, paint: Paint): string {
  const [colour, mark] = MARKS[state]
  const advice = fix === undefined ? '' : `  ${paint('dim', `→ ${visible(fix)}`)}`
  return `${paint(colour, mark)} ${pad(visible(subject), width)}  ${visible(message)}${advice}\n`
}

/** The actions to take. */
function renderEnd(findings: readonly Finding[]): string {
  const failed = findings.filter(({ state }) => state === 'fail')
  const warned = findings.filter(({ state }) => state === 'warn')
  if (failed.length + warned.length === 0) return '\nEverything works. Nothing to do.\n'
  const verdict =
    failed.length === 0 ? 'It works. Recommended fixes:' : `${count(failed.length, 'problem')}. How to fix:`
  const fixes = new Set([...failed, ...warned].map(({ subject, fix }) => `${subject}: ${fix ?? ''}`))
  return `\n${verdict}\n${[...fixes].map((fix, index) => `  ${index + 1}. ${visible(fix)}\n`).join('')}`
}
