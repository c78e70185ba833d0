import { OperatorError } from '../../std/errors.ts'

/** A problem of the configuration, with its position. */
export interface Fault {
  /** The file, or the environment variable, that the value came from; null for an object handed to the library. */
  file: string | null
  /** From 1; null where there is none. */
  line: number | null
  column: number | null
  /** `handlers[0].url`; empty for the configuration as a whole. */
  path: string
  /** What is wrong and how to fix it. Never a secret's value. */
  message: string
}

/** All faults of a configuration together. Exit code 2. */
export class ConfigError extends OperatorError {
  readonly faults: readonly Fault[]

  constructor(faults: readonly Fault[], fix: string | null = null) {
    super(faults.map(renderFault).join('\n'), 2, fix)
    this.name = 'ConfigError'
    this.faults = faults
  }
}

/** `sidecar.yaml:12:5: handlers[0].tiemout: unknown key, did you mean "timeout"?` */
export function renderFault(fault: Fault): string {
  const place = [fault.file, fault.line, fault.column].filter((part) => part !== null).join(':')
  return [place, fault.path, fault.message].filter((part) => part !== '').join(': ')
}

export type Path = readonly (string | number)[]

/** `['handlers', 0, 'url']` as `handlers[0].url`. */
export function renderPath(path: Path): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else text += text === '' ? step : `.${step}`
  }
  return text
}
