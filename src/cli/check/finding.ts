/** One line of the doctor: what was looked at, how it is, and the mend where it is not well. */
export interface Finding {
  subject: string
  /** `warn`: works, and yet better mended. `fail`: would not work. */
  state: 'ok' | 'warn' | 'fail'
  message: string
  mend?: string
}

export const ok = (subject: string, message: string): Finding => ({ subject, state: 'ok', message })

export const warn = (subject: string, message: string, mend: string): Finding => ({
  subject,
  state: 'warn',
  message,
  mend,
})

export const fail = (subject: string, message: string, mend: string): Finding => ({
  subject,
  state: 'fail',
  message,
  mend,
})
