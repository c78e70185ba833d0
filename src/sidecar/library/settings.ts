import { parseDuration } from '../../std/duration.ts'

/** Settings for the runs of a tool. Durations as in the configuration: `30s`. */
export interface ToolSettings {
  timeout?: string
  /** For the whole call, declared to the service as `timeout_seconds`: `1s` to `2h`. Without it a call may wait forever. */
  deadline?: string
  concurrency?: number
  retry?: { attempts?: number; base?: string; max?: string }
  after_crash?: 'retry' | 'fail'
  error?: string
  on_not_delivered?: 'resend' | 'report'
}

const HOUR = 3_600_000
const MAX_ERROR = 4000
const WORDS = {
  after_crash: ['retry', 'fail'],
  on_not_delivered: ['resend', 'report'],
} as const

/**
 * Checks the settings of a tool against the limits of the configuration (config/README.md, `tools[]`).
 * @throws {TypeError} that names the tool and the setting.
 */
export function checkSettings(name: string, settings: ToolSettings): void {
  const { retry = {} } = settings
  const refuse = (setting: string, value: unknown, wanted: string): never => {
    throw new TypeError(`tool ${name}: ${setting} is ${JSON.stringify(value)}; give ${wanted}`)
  }
  const durations = [
    ['timeout', settings.timeout, 1, 2 * HOUR],
    ['deadline', settings.deadline, 1000, 2 * HOUR],
    ['retry.base', retry.base, 1, HOUR],
    ['retry.max', retry.max, 1, 7 * 24 * HOUR],
  ] as const
  for (const [setting, value, least, most] of durations) {
    if (value === undefined) continue
    const ms = typeof value === 'string' ? parseDuration(value) : null
    if (ms === null || ms < least || ms > most)
      refuse(setting, value, 'a duration such as 250ms or 30s, as in the configuration')
  }
  const counts = [
    ['concurrency', settings.concurrency, 1024],
    ['retry.attempts', retry.attempts, 1000],
  ] as const
  for (const [setting, value, most] of counts) {
    if (value !== undefined && !(Number.isInteger(value) && value >= 1 && value <= most))
      refuse(setting, value, `a whole number from 1 to ${most}`)
  }
  for (const setting of ['after_crash', 'on_not_delivered'] as const) {
    const words: readonly string[] = WORDS[setting]
    const value = settings[setting]
    if (value !== undefined && !words.includes(value)) refuse(setting, value, words.join(' or '))
  }
  const { error } = settings
  if (error !== undefined && !(typeof error === 'string' && error !== '' && error.length <= MAX_ERROR))
    refuse('error', error, `a text of at most ${MAX_ERROR} characters`)
}
