import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { loadConfig } from '../../src/sidecar/config/load.ts'
import { folderWith } from '../config/folder.ts'
import { Rig } from '../support/rig.ts'
import { command, documents, image, instruction, ROOT, text } from './documents.ts'

interface Named {
  name: string
}

interface Probe {
  httpGet: { path: string; port: string }
}

interface Container extends Named {
  image: string
  restartPolicy?: string
  env?: (Named & { value: string })[]
  ports: (Named & { containerPort: number })[]
  startupProbe: Probe
  livenessProbe: Probe
  readinessProbe: Probe
  lifecycle?: { preStop: { sleep: { seconds: number } } }
  securityContext: Record<string, unknown>
  volumeMounts: (Named & { mountPath: string })[]
}

interface Manifest {
  kind: string
  metadata: Named
  spec: {
    replicas: number
    serviceName?: string
    podManagementPolicy?: string
    selector?: { matchLabels?: object }
    template: { metadata?: { labels: object }; spec: Pod }
    volumeClaimTemplates?: { metadata: Named }[]
  }
}

interface Pod {
  terminationGracePeriodSeconds: number
  securityContext: Record<string, unknown>
  containers?: Container[]
  initContainers?: Container[]
  volumes: Named[]
}

const FOLDER = 'config/kubernetes'
const [COMPONENT] = documents<Manifest>(`${FOLDER}/component/sidecar.yaml`)
const STATEFUL = documents<Manifest>(`${FOLDER}/standalone/sidecar.yaml`).find(
  ({ kind }) => kind === 'StatefulSet',
)
const REPLICAS = documents<Manifest>(`${FOLDER}/replicas/sidecar.yaml`)
const DEPLOYMENT = REPLICAS.find(({ kind }) => kind === 'Deployment')
const MANIFESTS = [
  ['component', COMPONENT],
  ['stand-alone', STATEFUL],
  ['replicas', DEPLOYMENT],
] as const

function podOf(manifest: Manifest | undefined): { pod: Pod; container: Container } {
  const pod = manifest?.spec.template.spec
  const [container] = [...(pod?.initContainers ?? []), ...(pod?.containers ?? [])]
  if (pod === undefined || container === undefined) throw new Error('there is no container')
  return { pod, container }
}

test.each(MANIFESTS)(
  'the %s mounts what the image needs, and nothing that is not there',
  (_name, manifest) => {
    const { pod, container } = podOf(manifest)
    const claims = manifest?.spec.volumeClaimTemplates?.map(({ metadata }) => metadata.name) ?? []
    const volumes = [...pod.volumes.map(({ name }) => name), ...claims]
    expect(container.volumeMounts.map(({ name }) => name).sort()).toEqual(volumes.sort())
    const mounts = container.volumeMounts.map(({ mountPath }) => mountPath)
    const [data = ''] = JSON.parse(instruction('VOLUME')) as string[]
    // A store in a database leaves nothing on a disk.
    expect(mounts.includes(data)).toBe(manifest !== DEPLOYMENT)
    expect(mounts).toContain(path.dirname(command().at(-1) ?? ''))
  },
)

test.each(MANIFESTS)(
  'the %s runs as the user of the image, with no right that it does not need',
  (_name, manifest) => {
    const { pod, container } = podOf(manifest)
    const [uid, gid] = instruction('USER').split(':').map(Number)
    expect({ ...pod.securityContext, ...container.securityContext }).toMatchObject({
      runAsNonRoot: true,
      runAsUser: uid,
      runAsGroup: gid,
      fsGroup: gid,
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    })
  },
)

test.each(MANIFESTS)('the %s is of this version and is given time to end', (_name, manifest) => {
  const { pod, container } = podOf(manifest)
  const { version } = JSON.parse(text('package.json')) as { version: string }
  expect(manifest?.spec.replicas).toBe(manifest === DEPLOYMENT ? 3 : 1)
  expect(container.image).toBe(`agent-session-sidecar:${version}`)
  expect(image().base).toBe('node:24-slim')
  const [, grace = ''] = /^const GRACE = ([\d_]+)$/m.exec(text('src/cli/run.ts')) ?? []
  expect(pod.terminationGracePeriodSeconds * 1000).toBeGreaterThan(Number(grace.replaceAll('_', '')))
})

test('a stand-alone pod that is never ready is replaced when its configuration is corrected', () => {
  expect(STATEFUL?.spec.podManagementPolicy).toBe('Parallel')
})

test('a replica that stops still accepts the requests that are sent to it meanwhile, and then has its grace', () => {
  const { container, pod } = podOf(DEPLOYMENT)
  const pause = container.lifecycle?.preStop.sleep.seconds ?? 0
  expect(pause).toBeGreaterThanOrEqual(5)
  expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(25 + pause)
})

test('the component is a native sidecar, and the other a set with a service and labels that agree', () => {
  expect(podOf(COMPONENT).container.restartPolicy).toBe('Always')
  const [kustomization] = documents<{ kind: string; resources: string[]; patches: { path: string }[] }>(
    `${FOLDER}/component/kustomization.yaml`,
  )
  expect(kustomization?.kind).toBe('Component')
  for (const file of [
    ...(kustomization?.resources ?? []),
    ...(kustomization?.patches ?? []).map((patch) => patch.path),
  ])
    expect(documents(`${FOLDER}/component/${file}`)).toHaveLength(1)
  const [service] = documents<Manifest>(`${FOLDER}/standalone/sidecar.yaml`)
  expect(STATEFUL?.spec.serviceName).toBe(service?.metadata.name)
  expect(STATEFUL?.spec.selector?.matchLabels).toEqual(STATEFUL?.spec.template.metadata?.labels)
  expect(service?.spec.selector).toEqual(STATEFUL?.spec.template.metadata?.labels)
})

test('probes ask for routes that a sidecar has, at the port where it listens', async () => {
  await using rig = await Rig.open({ channels: ['poll'] })
  for (const [, manifest] of MANIFESTS) {
    const { container } = podOf(manifest)
    for (const { httpGet } of [container.startupProbe, container.livenessProbe, container.readinessProbe]) {
      expect([httpGet.path, (await rig.raw('GET', httpGet.path)).status]).toEqual([httpGet.path, 200])
      expect(container.ports.find(({ name }) => name === httpGet.port)?.containerPort).toBe(8481)
    }
  }
  const { env } = podOf(COMPONENT).container
  expect(env).toEqual([{ name: 'SIDECAR_ADMIN__LISTEN', value: '0.0.0.0:8481' }])
})

test('the replicas have a database, Services for the API and for webhooks, and are not disturbed all at once', async () => {
  const labels = { 'app.kubernetes.io/name': 'agent-session-sidecar' }
  expect(DEPLOYMENT?.spec.template.metadata?.labels).toEqual(labels)
  expect(REPLICAS.map(({ kind, spec }) => [kind, spec.selector])).toEqual([
    ['Service', labels],
    ['Service', labels],
    ['PodDisruptionBudget', { matchLabels: labels }],
    ['Deployment', { matchLabels: labels }],
  ])
  const files = await folderWith({
    'service-token': 'svc_pat_x\n',
    'callback-secret': 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n',
    'admin-token': '8b1f0c6d2a7e4f5390c1d2e3f4a5b6c7\n',
    password: 'the-password\n',
    'ca.pem': 'an authority',
  })
  const configuration = readFileSync(path.join(ROOT, FOLDER, 'replicas/configuration.yaml'), 'utf8')
  const folder = await folderWith({
    'sidecar.yaml': configuration.replaceAll(/\/run\/secrets\/(sidecar|database)/g, files),
  })
  const { config, warnings } = await loadConfig(path.join(folder, 'sidecar.yaml'), {})
  expect(warnings).toEqual([])
  expect(config.store.url).toMatchObject({
    kind: 'postgres',
    password: 'the-password',
    tls: { checked: 'name' },
  })
  const ports = podOf(DEPLOYMENT).container.ports.map(({ containerPort }) => containerPort)
  expect(ports).toEqual([config.admin.listen.port, config.webhooks?.listen.port])
})

test('the configuration of the stand-alone one loads, with the secrets that it names', async () => {
  const secrets = await folderWith({
    'service-token': 'svc_pat_x\n',
    'callback-secret': 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n',
    'admin-token': '8b1f0c6d2a7e4f5390c1d2e3f4a5b6c7\n',
  })
  const configuration = readFileSync(path.join(ROOT, FOLDER, 'standalone/configuration.yaml'), 'utf8')
  const mounted = podOf(STATEFUL).container.volumeMounts.find(({ name }) => name === 'secrets')?.mountPath
  const folder = await folderWith({ 'sidecar.yaml': configuration.replaceAll(String(mounted), secrets) })
  const { config, warnings } = await loadConfig(path.join(folder, 'sidecar.yaml'), {})
  expect(warnings).toEqual([])
  expect(config.store.url).toEqual({ kind: 'sqlite', path: '/app/data/sidecar.db', former: [] })
  expect(config.admin.listen).toEqual({ host: '0.0.0.0', port: 8481 })
})
