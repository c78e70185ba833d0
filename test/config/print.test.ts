import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { resolveConfig } from '../../src/sidecar/config/load.ts'
import { printConfig } from '../../src/sidecar/config/print.ts'
import { jsonSchema } from '../../src/sidecar/config/schema.ts'
import { folderWith } from './folder.ts'

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

describe('a printed configuration', () => {
  test('hides secrets by their key and, elsewhere, by their value', async () => {
    const folder = await folderWith({ old: `${SECRET}\n` })
    const loaded = await resolveConfig(
      {
        service: { base_url: 'https://agents.example.com/', token: 'svc_pat_very-secret' },
        store: { url: 'postgres://sidecar:pass%20word@db/sidecar' },
        webhooks: { secrets: ['s'] },
        handlers: [{ name: 'a', url: 'http://127.0.0.1/?key=svc_pat_very-secret', secrets_file: 'old' }],
        tools: [{ name: 't', url: 'http://127.0.0.1/', description: `signed by ${SECRET} and pass word` }],
      },
      { base: folder },
    )
    const text = printConfig(loaded)
    for (const secret of ['very-secret', 'pass%20word', 'pass word', SECRET])
      expect(text).not.toContain(secret)
    expect(parse(text)).toMatchObject({
      service: { token: '[redacted]' },
      store: { url: 'postgres://sidecar:[redacted]@db/sidecar' },
      webhooks: { secrets: ['[redacted]'] },
      handlers: [{ url: 'http://127.0.0.1/?key=[redacted]', secrets_file: 'old', timeout: '15s' }],
      tools: [{ description: 'signed by [redacted] and [redacted]' }],
    })
  })

  test('of a store whose password is not percent-encoded hides it: printing it threw', async () => {
    const text = printConfig(
      await resolveConfig({
        service: { base_url: 'https://agents.example.com/', token: 'svc_pat_x' },
        store: { url: 'postgres://sidecar:100%zz@db/sidecar' },
      }),
    )
    expect(text).not.toContain('100%zz')
  })
})

describe('the JSON Schema', () => {
  const schema = JSON.parse(JSON.stringify(jsonSchema())) as Record<string, unknown>

  test('is JSON Schema 2020-12 that judges files by itself', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false })
    expect(ajv.validateSchema(schema)).toBe(true)
    const judge = ajv.compile(schema)
    expect(judge({ service: { base_url: 'https://a.b', token: 'x' } })).toBe(true)
    expect(judge({ service: { base_url: 'https://a.b', tokn: 'x' } })).toBe(false)
    expect(judge({ service: { base_url: 'https://a.b' }, handlers: [{ name: 'a' }] })).toBe(false)
  })

  test('explains every key', () => {
    const silent: string[] = []
    const walk = (node: Record<string, unknown>, at: string): void => {
      for (const [key, property] of Object.entries(
        (node['properties'] ?? {}) as Record<string, Record<string, unknown>>,
      )) {
        if (typeof property['description'] !== 'string') silent.push(`${at}.${key}`)
        walk(property, `${at}.${key}`)
        if (property['items'] !== undefined)
          walk(property['items'] as Record<string, unknown>, `${at}.${key}[]`)
      }
    }
    walk(schema, '')
    expect(silent).toEqual([])
  })
})
