import { expect, it } from 'vitest'
import { resolveConfig } from '../../src/sidecar/config/load.ts'
import type { ConfigInput } from '../../src/sidecar/config/schema.ts'
import { fingerprint } from '../../src/sidecar/fingerprint.ts'
import { loadSpecs } from '../../src/sidecar/specs.ts'

const SERVICE = { base_url: 'https://agents.example.com', token: 'svc_pat_1' }
const BILLING = {
  name: 'billing',
  url: 'http://app/billing',
  events: ['turn.*', 'session.created'],
  secret: 'whsec_MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw',
}
const AUDIT = { name: 'audit', url: 'http://app/audit', events: ['*'] }
const REFUND = {
  name: 'refund',
  url: 'http://app/refund',
  parameters: { type: 'object', properties: { order: { type: 'string' }, cents: { type: 'integer' } } },
}

async function of(input: Partial<ConfigInput>): Promise<string> {
  const { config } = await resolveConfig({ service: SERVICE, ...input })
  return fingerprint(config, await loadSpecs(config, { events: [], handle: () => undefined, tools: [] }))
}

const BASE = { handlers: [BILLING, AUDIT], tools: [REFUND] }

it('is equal for one configuration in another order, with other secrets and on another machine', async () => {
  const parameters = { properties: { cents: { type: 'integer' }, order: { type: 'string' } }, type: 'object' }
  const others: Partial<ConfigInput>[] = [
    { ...BASE, handlers: [AUDIT, BILLING] },
    { ...BASE, handlers: [{ ...BILLING, events: ['session.created', 'turn.*'] }, AUDIT] },
    { ...BASE, tools: [{ ...REFUND, parameters }] },
    { ...BASE, handlers: [{ ...BILLING, secret: 'whsec_MTExMTExMTExMTExMTExMTExMTExMTEx' }, AUDIT] },
    { ...BASE, service: { ...SERVICE, token: 'svc_pat_2' } },
    { ...BASE, store: { url: 'sqlite:/another/place/store.db' }, log: { level: 'debug' } },
    { ...BASE, admin: { listen: '127.0.0.1:9999', token: 'another-token-of-the-admin' } },
  ]
  const expected = await of(BASE)
  expect(await Promise.all(others.map(of))).toEqual(others.map(() => expected))
})

it('differs for whatever makes replicas work differently', async () => {
  const others: Partial<ConfigInput>[] = [
    BASE,
    { ...BASE, handlers: [BILLING] },
    { ...BASE, handlers: [{ ...BILLING, ordered: false }, AUDIT] },
    { ...BASE, handlers: [{ ...BILLING, url: 'http://app/other' }, AUDIT] },
    { ...BASE, tools: [] },
    { ...BASE, tools: [{ ...REFUND, parameters: { type: 'object' } }] },
    { ...BASE, scope: { metadata: { app: 'billing' } } },
    { ...BASE, stream: { enabled: false } },
    { ...BASE, service: { ...SERVICE, base_url: 'https://other.example.com' } },
  ]
  expect(new Set(await Promise.all(others.map(of))).size).toBe(others.length)
})
