/** One line of `check`: the checked thing, its state, and how to fix it. */
export interface Finding {
  subject: string
  /** `warn`: works, but should be fixed. `fail`: does not work. */
  state: 'ok' | 'warn' | 'fail'
  message: string
  fix?: string
}

export const ok = (subject: string, message: string): Finding => ({ subject, state: 'ok', message })

export const warn = (subject: string, message: string, fix: string): Finding => ({
  subject,
  state: 'warn',
  message,
  fix,
})

export const fail = (subject: string, message: string, fix: string): Finding => ({
  subject,
  state: 'fail',
  message,
  fix,
})
