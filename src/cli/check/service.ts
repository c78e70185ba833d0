import { request } from 'undici'
import type { Config } from '../../config/config.ts'
import { messageOf } from '../../core/errors.ts'
import { isObject, parseJson, stringOf, type JsonObject } from '../../core/json.ts'
import { count, span } from '../text.ts'
import { fail, ok, warn, type Finding } from './finding.ts'

/** Milliseconds for each request. */
const TIMEOUT = 10_000
/** Bytes of an answer that are read. */
const MAX_ANSWER = 8 * 1024 * 1024
/** Milliseconds that clocks may differ before it is worth a word; half of it may be the way here. */
const SKEW = 10_000

interface Answer {
  status: number
  body: JsonObject
  /** The service's clock less ours, milliseconds; null when the answer had no date. */
  skew: number | null
}

/** Token, scopes, clock, description and webhook subscription, by the cheapest requests that tell. */
export async function checkService(config: Config): Promise<Finding[]> {
  const { baseUrl } = config.service
  let health: Answer
  try {
    health = await ask(config, '/v1/health')
  } catch (error) {
    const mend = 'correct service.base_url, or see to it that this machine reaches it'
    return [fail('service', `${baseUrl} cannot be reached: ${messageOf(error)}`, mend)]
  }
  const findings = [tokenFinding(config, health)]
  if (health.status !== 200) return findings
  findings.push(...scopeFindings(config, health.body), skewFinding(config, health.skew))
  findings.push(await descriptionFinding(config))
  if (config.webhooks.enabled && config.webhooks.publicUrl !== null) {
    findings.push(await subscriptionFinding(config, config.webhooks.publicUrl))
  }
  return findings
}

async function ask(config: Config, path: string): Promise<Answer> {
  const { baseUrl, token } = config.service
  const { statusCode, headers, body } = await request(baseUrl + path, {
    headers: { authorization: `Bearer ${token}`, accept: 'application/json' },
    headersTimeout: TIMEOUT,
    bodyTimeout: TIMEOUT,
  })
  const now = Date.now()
  const date = Date.parse(String(headers['date'] ?? ''))
  const parsed = parse(await readText(body))
  return {
    status: statusCode,
    body: isObject(parsed) ? parsed : {},
    skew: Number.isNaN(date) ? null : date - now,
  }
}

async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > MAX_ANSWER) break
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parse(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return null
  }
}

function tokenFinding({ service }: Config, { status, body }: Answer): Finding {
  if (status === 401)
    return fail('token', 'the service rejects it', 'mint a new one and put it into service.token or its file')
  if (status !== 200 || body['object'] !== 'health') {
    return fail(
      'service',
      `${service.baseUrl}/v1/health answered ${status} and no health`,
      'correct service.base_url: is that the Agent Session Service?',
    )
  }
  if (body['usable'] === false) {
    const missing = listOf(body['missing_scopes']).join(', ')
    return fail(
      'token',
      `accepted, but usable for nothing: it lacks ${missing}`,
      'mint one with these scopes',
    )
  }
  return ok('token', `accepted by ${service.baseUrl}; scopes ${listOf(body['scopes']).join(', ') || 'none'}`)
}

function scopeFindings(config: Config, health: JsonObject): Finding[] {
  const scopes = new Set(listOf(health['scopes']))
  const findings: Finding[] = []
  const need = (scope: string, feature: string, state: typeof fail): void => {
    if (scopes.has(scope)) return
    findings.push(state('scopes', `${scope} is missing: ${feature}`, `mint a token with ${scope}`))
  }
  need('sessions:read', 'no session can be read, so nothing works', fail)
  if (config.tools.length > 0) {
    need('tools:respond', `${count(config.tools.length, 'tool')} cannot answer`, fail)
    if (config.tools.some((tool) => tool.onNotDelivered === 'resend')) {
      need('sessions:write', 'an answer that was not delivered cannot be sent again as a fresh turn', warn)
    }
  }
  if (findings.length === 0) findings.push(ok('scopes', 'enough for what is enabled'))
  return findings
}

function skewFinding({ webhooks }: Config, skew: number | null): Finding {
  if (skew === null)
    return warn(
      'clock',
      'the service tells no time',
      'nothing to do here; deadlines are judged by our own clock',
    )
  const size = Math.abs(skew)
  const told = `ours is ${span(size)} ${skew > 0 ? 'behind' : 'ahead of'} the service's`
  if (webhooks.enabled && size > webhooks.tolerance) {
    return fail(
      'clock',
      `${told}: every webhook would be refused as stale`,
      'set the clock of this machine (NTP)',
    )
  }
  if (size > SKEW) return warn('clock', told, 'set the clock of this machine (NTP)')
  return ok('clock', 'agrees with the service’s')
}

async function descriptionFinding(config: Config): Promise<Finding> {
  const mend = 'give what is needed in service.routes; what is neither found nor given is off'
  try {
    const { status, body } = await ask(config, '/v1/openapi.json')
    const paths = isObject(body['paths']) ? Object.keys(body['paths']).length : 0
    return status === 200 && paths > 0
      ? ok('discovery', `the description at /v1/openapi.json names ${count(paths, 'path')}`)
      : warn('discovery', `/v1/openapi.json answered ${status} and describes nothing`, mend)
  } catch (error) {
    return warn('discovery', `/v1/openapi.json cannot be read: ${messageOf(error)}`, mend)
  }
}

async function subscriptionFinding(config: Config, url: string): Promise<Finding> {
  const { status, body } = await ask(config, '/v1/webhooks')
  if (status !== 200) {
    return fail(
      'webhooks',
      `the list of subscriptions answered ${status}`,
      'mint a token that may manage webhooks',
    )
  }
  const ours = (Array.isArray(body['data']) ? body['data'] : [])
    .filter(isObject)
    .find((one) => one['url'] === url)
  if (ours === undefined)
    return ok('webhooks', `no subscription for ${url} yet: the sidecar makes one when it starts`)
  const id = stringOf(ours['id']) ?? ''
  return ours['active'] === false
    ? warn('webhooks', `subscription ${id} was given up`, 'start the sidecar: it makes a new one')
    : ok('webhooks', `subscription ${id} is active`)
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}
