import { renderFault } from '../config/fault.ts'
import { loadConfig } from '../config/load.ts'
import type { Config } from '../config/config.ts'
import { expiryFinding } from './check/expiry.ts'
import { ok, warn, type Finding } from './check/finding.ts'
import { checkPorts } from './check/ports.ts'
import { checkTargets } from './check/reach.ts'
import { checkService } from './check/service.ts'
import { checkStore } from './check/store.ts'
import type { Context } from './context.ts'
import { pad, visible, type Paint } from './terminal.ts'
import { count } from './text.ts'

/** The doctor, which is over in five seconds. A configuration with faults ends it at once, as it would end `run`: exit 2. */
export async function check(
  { terminal, env }: Context,
  options: { config: string; json?: boolean },
): Promise<number> {
  const { config, warnings } = await loadConfig(options.config, env, Date.now())
  const looks = await Promise.all([
    checkService(config),
    checkPorts(config),
    checkTargets(config),
    checkStore(config.store.url, options.config),
  ])
  const findings = [
    configFinding(options.config, config),
    ...warnings.map((one) => warn('configuration', renderFault(one), 'see config/sidecar.yaml')),
    expiryFinding(config, Date.now()),
    ...looks.flat(),
  ]
  terminal.out(
    options.json === true
      ? findings.map((finding) => `${JSON.stringify(finding)}\n`).join('')
      : renderFindings(findings, terminal.paint) + renderEnd(findings),
  )
  return findings.some(({ state }) => state === 'fail') ? 1 : 0
}

function configFinding(file: string, { handlers, tools }: Config): Finding {
  const told = `${file}: ${count(handlers.length, 'handler')}, ${count(tools.length, 'tool')}`
  return handlers.length + tools.length > 0
    ? ok('configuration', told)
    : warn('configuration', `${told}: facts are kept and nobody is told`, 'add a handler')
}

const MARKS = { ok: ['green', '✓'], warn: ['yellow', '!'], fail: ['red', '✗'] } as const

/** One line each, with the mend. */
export function renderFindings(findings: readonly Finding[], paint: Paint): string {
  const width = Math.max(...findings.map(({ subject }) => subject.length))
  return findings
    .map(({ subject, state, message, mend }) => {
      const [colour, mark] = MARKS[state]
      const advice = mend === undefined ? '' : `  ${paint('dim', `→ ${visible(mend)}`)}`
      return `${paint(colour, mark)} ${pad(visible(subject), width)}  ${visible(message)}${advice}\n`
    })
    .join('')
}

/** What to do now. */
function renderEnd(findings: readonly Finding[]): string {
  const failed = findings.filter(({ state }) => state === 'fail')
  const warned = findings.filter(({ state }) => state === 'warn')
  if (failed.length + warned.length === 0) return '\nAll of it works. Nothing to do.\n'
  const verdict =
    failed.length === 0
      ? 'It would work. Better mended:'
      : `${count(failed.length, 'thing')} would not work. What to do:`
  const mends = new Set([...failed, ...warned].map(({ subject, mend }) => `${subject}: ${mend ?? ''}`))
  return `\n${verdict}\n${[...mends].map((mend, index) => `  ${index + 1}. ${visible(mend)}\n`).join('')}`
}
