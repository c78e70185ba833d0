import { expect, it } from 'vitest'
import { resolveConfig } from '../../src/sidecar/config/load.ts'
import { printConfig } from '../../src/sidecar/config/print.ts'
import { ConfigError } from '../../src/sidecar/config/fault.ts'
import type { ConfigInput } from '../../src/sidecar/config/schema.ts'

const SERVICE = { base_url: 'https://agents.example.com', token: 'svc_pat_1' }

const scopeOf = async (scope: unknown, env: Record<string, string> = {}) =>
  (
    await resolveConfig({ service: SERVICE, ...(scope === undefined ? {} : { scope }) } as ConfigInput, {
      env,
    })
  ).config.scope

async function faultsOf(scope: unknown): Promise<string[]> {
  const error: unknown = await scopeOf(scope).catch((reason: unknown) => reason)
  if (!(error instanceof ConfigError)) throw new Error('there is no fault')
  return error.faults.map(({ path, message }) => `${path}: ${message}`)
}

it('has every session by default', async () => {
  for (const scope of [undefined, {}, { metadata: {} }]) expect(await scopeOf(scope)).toBeNull()
})

it('takes metadata, an empty value too, and one token or several', async () => {
  expect(await scopeOf({ metadata: { app: 'billing', tier: '' } })).toEqual({
    metadata: { app: 'billing', tier: '' },
    createdByToken: [],
  })
  expect(await scopeOf({ created_by_token: 'tok_1' })).toEqual({ metadata: {}, createdByToken: ['tok_1'] })
  expect(await scopeOf({ created_by_token: ['tok_1', 'tok_2'] })).toEqual({
    metadata: {},
    createdByToken: ['tok_1', 'tok_2'],
  })
})

it('is overridden by JSON, and its token by plain text', async () => {
  const env = {
    SIDECAR_SCOPE__METADATA: '{"app":"support"}',
    SIDECAR_SCOPE__CREATED_BY_TOKEN: '["tok_1","tok_2"]',
  }
  expect(await scopeOf({ metadata: { app: 'billing' } }, env)).toEqual({
    metadata: { app: 'support' },
    createdByToken: ['tok_1', 'tok_2'],
  })
  expect(await scopeOf({}, { SIDECAR_SCOPE__CREATED_BY_TOKEN: 'tok_3' })).toMatchObject({
    createdByToken: ['tok_3'],
  })
})

it('refuses what it would silently not match, with the fix', async () => {
  expect(await faultsOf({ metdata: { app: 'x' } })).toEqual([
    'scope.metdata: unknown key, did you mean "metadata"?',
  ])
  expect(await faultsOf({ metadata: { tier: 1 } })).toEqual([
    'scope.metadata.tier: must be a text (in quotes, if it looks like a number), not 1',
  ])
  expect(await faultsOf({ created_by_token: [] })).toEqual([
    'scope.created_by_token: must be the id of a token, or a list of ids',
  ])
  expect(await faultsOf({ created_by_token: 7 })).toEqual([
    'scope.created_by_token: must be the id of a token, or a list of ids, not 7',
  ])
})

it('is printed with its effective values', async () => {
  const loaded = await resolveConfig({ service: SERVICE, scope: { metadata: { app: 'billing' } } })
  expect(printConfig(loaded)).toContain('scope:\n  metadata:\n    app: billing\n')
})
