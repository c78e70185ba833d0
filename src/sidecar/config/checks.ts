import { callbackKey } from '../../std/signature.ts'
import { isLoopback, parseListen } from './listen.ts'

/**
 * What is wrong with a value, in words that follow the key's name in a message: "must be HOST:PORT". null: the value is
 * valid.
 */
export type Check = (value: string) => string | null

/** One check for each `format` in schema.ts. No message repeats the value, because the value may be a secret. */
export const checks: Record<string, Check> = {
  'http-url': (value) => httpFault(value),

  'base-url': (value) => {
    const fault = httpFault(value)
    if (fault !== null) return fault
    const url = new URL(value)
    if (url.search !== '' || url.hash !== '') return 'must be a base address, without "?" or "#"'
    return /\/v1\/?$/.test(url.pathname) ? 'must be the address without /v1: the sidecar adds it' : null
  },

  'webhook-url': (value) => {
    const fault = httpFault(value)
    if (fault !== null) return fault
    const url = new URL(value)
    return url.protocol === 'https:' || isLoopback(url.hostname)
      ? null
      : 'must be an https address: the service accepts no other'
  },

  'store-url': (value) => {
    if (/^sqlite:(\/\/)?[^/?#]|^sqlite:(\/\/)?\/[^/]/.test(value)) return null
    if (/^postgres(ql)?:\/\//.test(value)) return URL.canParse(value) ? null : 'is not an address'
    return 'must be sqlite:PATH or postgres://user@host/db'
  },

  listen: (value) =>
    parseListen(value) === null ? 'must be HOST:PORT, such as 127.0.0.1:8481 or [::1]:8481' : null,

  token: (value) =>
    /^[\x21-\x7e]+$/.test(value)
      ? null
      : 'must be one word of printable ASCII, without spaces or line breaks',

  'callback-secret': (value) =>
    isCallbackSecret(value) ? null : 'must be a Standard Webhooks secret: "whsec_" followed by base64',

  'date-or-time': (value) =>
    /^\d{4}-\d{2}-\d{2}(T[0-9:.]+(Z|[+-]\d{2}:\d{2}))?$/.test(value) && !Number.isNaN(Date.parse(value))
      ? null
      : 'must be a date such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z',
}

function httpFault(value: string): string | null {
  if (!URL.canParse(value)) return 'must be an http or https address'
  const url = new URL(value)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    return `must be an http or https address, not "${url.protocol}"`
  }
  return url.username === '' && url.password === ''
    ? null
    : 'must have no user name and no password: they would be logged'
}

/**
 * Whether a text is a callback secret that begins with `whsec_`. `callbackKey` also accepts one without the prefix; a
 * configuration must have it, because people and secret scanners recognize a secret by it.
 */
export function isCallbackSecret(text: string): boolean {
  try {
    callbackKey(text)
  } catch {
    return false
  }
  return text.startsWith('whsec_')
}
