import { missingScopes } from '../../sidecar/scopes.ts'
import type { Config } from '../../sidecar/config/config.ts'
import { isObject, stringOf, type JsonObject } from '../../std/json.ts'
import { span } from '../text.ts'
import { ask, type Answer } from './ask.ts'
import { fail, ok, warn, type Finding } from './finding.ts'
import { checkRoutes } from './routes.ts'

/** Milliseconds of clock difference that are ignored; half of it may be network latency. */
const SKEW = 10_000

/**
 * Checks token, scopes, clock, routes and webhook subscription with the cheapest requests, all at
 * once.
 */
export async function checkService(config: Config): Promise<Finding[]> {
  const { baseUrl } = config.service
  const { enabled, publicUrl } = config.webhooks
  const [health, description, subscriptions] = await Promise.all([
    ask(config, '/v1/health'),
    ask(config, '/v1/openapi.json'),
    (enabled && publicUrl !== null) || config.scope === null ? ask(config, '/v1/webhooks') : null,
  ])
  if (health.fault !== null) {
    const fix = 'correct service.base_url, or the network of this machine'
    return [fail('service', `${baseUrl} is unreachable: ${health.fault}`, fix)]
  }
  const findings = [tokenFinding(config, health)]
  if (health.status !== 200) return findings
  findings.push(...scopeFindings(config, health.body), skewFinding(config, health.skew))
  findings.push(...checkRoutes(config, description))
  if (subscriptions !== null && enabled && publicUrl !== null)
    findings.push(subscriptionFinding(subscriptions, publicUrl))
  if (subscriptions !== null) findings.push(...scopeFinding(config, subscriptions))
  return findings
}

function tokenFinding({ service }: Config, { status, body }: Answer): Finding {
  if (status === 401)
    return fail(
      'token',
      'the service rejects the token',
      'create a new one and put it into service.token or its file',
    )
  if (status !== 200 || body['object'] !== 'health') {
    return fail(
      'service',
      `${service.baseUrl}/v1/health answered ${status}, which is not an answer of the Agent Session Service`,
      'correct service.base_url',
    )
  }
  if (body['usable'] === false) {
    const missing = listOf(body['missing_scopes']).join(', ')
    return fail('token', `the token is accepted, but has no scope ${missing}`, 'create one with these scopes')
  }
  return ok('token', `accepted by ${service.baseUrl}; scopes ${listOf(body['scopes']).join(', ') || 'none'}`)
}

function scopeFindings(config: Config, health: JsonObject): Finding[] {
  const findings = missingScopes(listOf(health['scopes']), config.tools).map(({ scope, costs, grave }) =>
    (grave ? fail : warn)('scopes', `${scope} is missing: ${costs}`, `create a token with ${scope}`),
  )
  if (findings.length === 0) findings.push(ok('scopes', 'enough for the enabled features'))
  return findings
}

function skewFinding({ webhooks }: Config, skew: number | null): Finding {
  if (skew === null)
    return warn(
      'clock',
      'the service sends no Date header, so its clock is unknown',
      'nothing to do; without it, no call is given up at its deadline',
    )
  const size = Math.abs(skew)
  const text = `the clock of this machine is ${span(size)} ${skew > 0 ? 'behind' : 'ahead of'} the service's`
  if (webhooks.enabled && size > webhooks.tolerance) {
    return fail(
      'clock',
      `${text}: every webhook would be refused as stale`,
      'set the clock of this machine (NTP)',
    )
  }
  if (size > SKEW) return warn('clock', text, 'set the clock of this machine (NTP)')
  return ok('clock', 'agrees with the service’s')
}

function subscriptionFinding({ status, body, fault }: Answer, url: string): Finding {
  if (fault !== null) return fail('webhooks', `the subscriptions cannot be read: ${fault}`, 'try again')
  if (status !== 200) {
    const error = isObject(body['error']) ? stringOf(body['error']['message']) : null
    const reason = error === null ? '' : `: ${error}`
    return fail(
      'webhooks',
      `the list of subscriptions answered ${status}${reason}`,
      status !== 403
        ? 'try again'
        : error === null
          ? 'create a token that may manage webhooks'
          : 'create a token that also has this scope',
    )
  }
  const ours = (Array.isArray(body['data']) ? body['data'] : [])
    .filter(isObject)
    .find((one) => one['url'] === url)
  if (ours === undefined)
    return ok('webhooks', `no subscription for ${url} yet: the sidecar creates one when it starts`)
  const id = stringOf(ours['id']) ?? ''
  return ours['active'] === false
    ? warn(
        'webhooks',
        `the service no longer uses subscription ${id}: its deliveries failed`,
        'start the sidecar: it creates a new one',
      )
    : ok('webhooks', `subscription ${id} is active`)
}

/** Another sidecar of the organization can only be recognised by its webhook subscription. */
function scopeFinding({ scope, webhooks, tools }: Config, { status, body, fault }: Answer): Finding[] {
  if (scope !== null || fault !== null || status !== 200) return []
  const listed = (Array.isArray(body['data']) ? body['data'] : []).filter(isObject)
  const others = listed.filter((one) => one['active'] !== false && one['url'] !== webhooks.publicUrl)
  // One subscription may be ours: the user creates it if the configuration has no public address.
  const ours = webhooks.enabled && webhooks.publicUrl === null ? 1 : 0
  if (others.length <= ours) return []
  const urls = others.map((one) => stringOf(one['url']) ?? '').join(', ')
  const costs = tools.length === 0 ? 'each gets the facts of the other' : "each runs the other's tools"
  return [
    warn(
      'scope',
      `this organization has another webhook subscription (${urls}): if it belongs to another sidecar, ${costs}`,
      'set scope, such as scope: { metadata: { app: billing } }, in both configurations',
    ),
  ]
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}
