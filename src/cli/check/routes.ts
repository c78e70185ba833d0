import type { Config } from '../../sidecar/config/config.ts'
import { messageOf } from '../../std/errors.ts'
import { discover, type OperationName } from '../../client/discovery/discovery.ts'
import { resultsOf, type DiscoveryResult } from '../../client/discovery/results.ts'
import { count } from '../text.ts'
import type { Answer } from './ask.ts'
import { fail, ok, warn, type Finding } from './finding.ts'

const HOW: Readonly<Record<string, string>> = {
  document: 'found in the description',
  override: 'from service.routes',
  default: 'from the interface; the description does not show it',
}

/** The result of discovery: each route, and how it was found. */
export function checkRoutes(config: Config, { status, body, fault }: Answer): Finding[] {
  const described = fault === null && status === 200 && body['paths'] !== undefined
  try {
    const discovery = discover(described ? body : undefined, config.service.routes)
    const { routes } = discovery
    const entries = Object.entries(routes) as [OperationName, (typeof routes)[OperationName]][]
    const found = entries.filter(([, route]) => route.found).length
    return [
      described
        ? ok('discovery', `${found} of ${count(entries.length, 'route')} known`)
        : warn(
            'discovery',
            `/v1/openapi.json ${fault ?? `answered ${status}, but describes no route`}`,
            'set the needed routes in service.routes; features without a route are off',
          ),
      ...entries.map(([name, route]) =>
        route.found
          ? ok(`route ${name}`, `${route.method} ${route.path}, ${HOW[route.how] ?? route.how}`)
          : missing(config, name, route.reason),
      ),
      ...resultsOf(discovery)
        .filter(({ name }) => /headers?$/.test(name))
        .map(headerFinding),
    ]
  } catch (error) {
    return [fail('discovery', messageOf(error), 'correct service.routes')]
  }
}

/** Headers have no route to show. */
function headerFinding({ name, found, without, override }: DiscoveryResult): Finding {
  if (found !== null) return ok(name, found)
  const fix = override === null ? 'nothing to do here' : `set service.routes.${override}`
  return warn(name, `the description has none: ${without}`, fix)
}

/** The consequence of a missing route depends on the enabled features. */
function missing({ tools, webhooks }: Config, name: OperationName, reason: string): Finding {
  const [why, fix = 'set it in service.routes'] = reason.split('; ')
  const text = `${why}`
  if (name === 'answer' && tools.length > 0) return fail(`route ${name}`, `${text}: no tool can answer`, fix)
  if (name === 'sendMessage' && tools.some(({ onNotDelivered }) => onNotDelivered === 'resend'))
    return warn(`route ${name}`, `${text}: an answer with the outcome not_delivered is not sent again`, fix)
  if (name.endsWith('Webhook') && webhooks.enabled && webhooks.publicUrl !== null)
    return fail(`route ${name}`, `${text}: no subscription can be created`, fix)
  return ok(`route ${name}`, `${text}; no enabled feature needs it`)
}
