import type { Config } from '../../sidecar/config/config.ts'
import { span } from '../text.ts'
import { fail, ok, warn, type Finding } from './finding.ts'

/** A token is reported from this time before its expiry, as by the alert. Milliseconds. */
const SOON = 7 * 24 * 60 * 60 * 1000

/** The service does not report when its token expires; the configuration may. */
export function expiryFinding({ service: { tokenExpiresAt: at } }: Config, now: number): Finding {
  const fix = 'create a new one, put it into service.token or its file, and correct service.token_expires_at'
  if (at === null)
    return ok('token expiry', 'not known; service.token_expires_at is optional, and gives a warning in time')
  if (at <= now) return fail('token expiry', `it expired ${span(now - at)} ago`, fix)
  const text = `it expires in ${span(at - now)}`
  return at - now < SOON ? warn('token expiry', text, fix) : ok('token expiry', text)
}
