import { hash } from 'node:crypto'
import { scopeText } from '../core/scope.ts'
import type { Shards } from '../core/shards.ts'
import { messageOf } from '../std/errors.ts'
import { isObject } from '../std/json.ts'
import type { Log } from '../std/ports.ts'
import type { Config } from './config/config.ts'
import type { Specs } from './specs.ts'

/**
 * Two replicas of which only one has the handler `billing` lose callbacks: the other one makes none for its sessions. So each
 * publishes this text, which is equal for equal configurations. Secrets, addresses of listeners and the store are not in it.
 */
export function fingerprint({ service, stream, webhooks, polling, scope }: Config, specs: Specs): string {
  const handlers = specs.handlers.map(({ target, events, ...spec }) => ({
    ...spec,
    events: events.toSorted(),
    target: addressOf(target),
  }))
  const tools = specs.tools.map(({ target, ...spec }) => ({ ...spec, target: addressOf(target) }))
  const compared = {
    service: service.baseUrl,
    scope: scopeText(scope),
    stream,
    polling,
    webhooks: [webhooks.enabled, webhooks.publicUrl, webhooks.tolerance],
    handlers: handlers.toSorted(byName),
    tools: tools.toSorted(byName),
  }
  return hash('sha256', JSON.stringify(compared, byKey), 'hex').slice(0, 12)
}

/** People write the keys of a tool's parameters in any order. Sorted, equal parameters give an equal text. */
function byKey(_key: string, value: unknown): unknown {
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

function addressOf(target: { kind: 'http'; url: string } | { kind: 'module' }): string {
  return target.kind === 'http' ? target.url : target.kind
}

function byName(a: { name: string }, b: { name: string }): number {
  return a.name < b.name ? -1 : 1
}

/** Warns when a replica with another configuration joined. */
export function warnOfDifference(shards: Shards, log: Log): void {
  const look = async (): Promise<void> => {
    const records = await shards.replicas()
    const own = records.find(({ self }) => self)?.configuration ?? null
    const others = records.filter(({ configuration }) => configuration !== null && configuration !== own)
    if (own === null || others.length === 0) return
    log.warn(
      { replicas: others.map(({ name, id }) => `${name} ${id.slice(0, 8)}`.trim()) },
      'replicas: some have another configuration. A handler gets no callbacks about the sessions of a replica that does not have ' +
        'it: give all replicas the same service.base_url, scope, channels, handlers and tools',
    )
  }
  shards.subscribe({
    population: () =>
      void look().catch((error: unknown) =>
        log.debug({ error: messageOf(error) }, 'replicas: their configurations could not be compared'),
      ),
  })
}
