import { spawnSync } from 'node:child_process'
import { cp, readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/sidecar/config/load.ts'
import { documentsOf } from '../deployment/documents.ts'
import { hasKustomize } from '../deployment/kustomize.ts'
import { unknownKeys, validateManifest } from '../deployment/schemas.ts'
import { CERTIFICATE } from '../support/certificate.ts'
import { FULL } from '../support/full.ts'
import { administer, PostgresServer } from '../support/postgres.ts'
import { blocks, group, ROOT } from './document.ts'
import { Story, type Result } from './story.ts'

const stories: Story[] = []

afterEach(async () => {
  for (const story of stories.splice(0)) await story.end()
})

async function begin(): Promise<Story> {
  const story = await Story.begin()
  stories.push(story)
  return story
}

/** Plays a group to its end; every command of it must end well. */
async function play(story: Story, name: string): Promise<void> {
  for (const block of group(name)) {
    if (block.words.includes('shows')) await story.says(block.text)
    await story.play(block)
  }
}

interface Rendered {
  kind: string
  spec: {
    selector?: object
    ports?: object[]
    template?: { metadata: { labels: object }; spec: object }
  }
}

/** The documents of a file that kubectl rendered, each as the schemas of Kubernetes want it. */
async function valid(file: string): Promise<Rendered[]> {
  const rendered = documentsOf<Rendered>(await readFile(file, 'utf8'))
  for (const manifest of rendered) validateManifest(manifest)
  expect(unknownKeys(rendered)).toBe('')
  return rendered
}

function podOf(rendered: readonly Rendered[]): object | undefined {
  return rendered.find(({ kind }) => kind === 'Deployment')?.spec.template?.spec
}

async function base64Line(file: string): Promise<string> {
  return Buffer.from((await readFile(file, 'utf8')).trimEnd()).toString('base64')
}

/** The configuration of the pod, with the secrets where they are before they are mounted. */
async function configIn({ folder }: Story): ReturnType<typeof loadConfig> {
  const file = path.join(folder, 'sidecar.yaml')
  const text = await readFile(path.join(folder, 'pod/sidecar.yaml'), 'utf8')
  await writeFile(file, text.replaceAll('/run/secrets/sidecar', path.join(folder, 'pod')))
  return await loadConfig(file, {})
}

describe('the documents', () => {
  test('leaves no command untried but those that install, or that take long', () => {
    const commands = blocks().filter(({ language }) => language === 'sh')
    const untried = commands.filter(
      // Those of the word database are run by test/deployment/runbook.test.ts.
      ({ words }) =>
        !words.includes('run') &&
        words[0] !== 'database' &&
        !words.some((word) => /^(start|file)=/.test(word)),
    )
    expect(untried.map(({ words }) => words[0])).toEqual([
      'try',
      'once',
      'try',
      'compose',
      'package',
      'crash',
      'docker',
      'push',
      'copy',
      'simulate',
    ])
    expect(untried.map(({ text }) => text.split('\n')[0])).toEqual([
      'npm ci && npm start',
      'npm start -- --once',
      'npm cit',
      'docker compose -f config/compose.yaml up --build',
      'npm run package',
      'npm start -- dev --crash',
      'docker build -t agent-session-sidecar:0.1.0 .',
      'docker tag agent-session-sidecar:0.1.0 registry.example.com/agent-session-sidecar:0.1.0',
      'session-sidecar store copy --from sqlite:data/sidecar.db --to "postgres://sidecar@db.example.com/sidecar?sslmode=verify-full" --password-file database-password',
      'npm run simulate -- --seeds 2000',
    ])
  })

  test('shows what the demonstration prints', async () => {
    const [command, shown] = group('once')
    const { code, out } = await (await begin()).run(command?.text ?? '')
    expect(code).toBe(0)
    for (const line of (shown?.text ?? '').trimEnd().split('\n')) expect(out).toMatch(demonstrated(line))
  })

  test.runIf(FULL)('shows what a crash does', async () => {
    const [command, shown] = group('crash')
    const { code, out } = await (await begin()).run(command?.text ?? '')
    expect(code).toBe(0)
    for (const line of (shown?.text ?? '').trimEnd().split('\n')) expect(out).toMatch(demonstrated(line))
  })

  test.runIf(FULL)('sends events to the user’s app without a configuration', async () => {
    const story = await begin()
    const programs = group('first').filter(({ words }) =>
      words.some((word) => /\.mjs$|^start=3000$/.test(word)),
    )
    for (const block of [...group('first').slice(0, 1), ...programs]) await story.play(block)
    const [command, ...others] = group('forward')
    const { code, out } = await story.run(command?.text ?? '')
    expect(out).toContain('✓ everything is idle')
    expect(code).toBe(0)
    for (const block of others) {
      if (block.words.includes('shows')) await story.says(block.text)
      await story.play(block)
    }
    // `listen` and the emulator end well on a signal; the app knows nothing of signals.
    expect(await story.end()).toEqual([0, 0, 'SIGINT'])
  })

  test('has no group of commands that no test plays', () => {
    const groups = blocks().flatMap(({ language, words }) =>
      language === 'sh' && words.length > 1 ? (words[0] ?? []) : [],
    )
    expect([...new Set(groups)].toSorted()).toEqual([
      'client',
      'curl',
      'first',
      'forward',
      'pod',
      'python',
      'relay',
      'restore',
      'tools',
      'webhooks',
    ])
  })

  test('leads to a first handler and tool, and its commands work on them', async () => {
    const story = await begin()
    await play(story, 'first')
    // A signal ends the sidecar and the emulator well; the handler knows nothing of signals.
    expect(await story.end()).toEqual([0, 'SIGINT', 0])
  })

  test.runIf(FULL)('puts a backup back', async () => {
    const story = await begin()
    for (const block of group('first').slice(0, 2)) await story.play(block)
    await story.start('npm start -- emulate', '4010')
    await story.start('npm start -- run -c sidecar.yaml', '8481')
    const [backup] = group('first').filter(({ text }) => text.includes('store backup'))
    if (backup === undefined) throw new Error('no document makes a backup')
    await story.play(backup)
    expect(await story.stop()).toEqual([0, 0])
    await play(story, 'restore')
    expect((await readdir(path.join(story.folder, 'data'))).join(' ')).toContain('before-restore')
  })

  const python = spawnSync('python3', ['-c', 'import http.server']).status === 0
  if (!python) process.stderr.write('README: there is no python3 here, its handler and tool are NOT tried\n')

  test.skipIf(!python)('has a handler and a tool in Python that do the same', async () => {
    const story = await begin()
    const blocks = group('first').filter(({ language }) => language !== 'js')
    for (const block of [
      ...group('python').filter(({ words }) => !words.includes('start=3000')),
      ...blocks,
    ]) {
      if (block.text === 'node app.mjs\n') {
        for (const program of group('python').filter(({ words }) => words.includes('start=3000')))
          await story.play(program)
      } else await story.play(block)
      if (!block.words.includes('shows')) continue
      await story.says(block.text)
      break
    }
    expect(
      (await story.run('curl -s -o forged -w "%{http_code}" -d "{}" http://127.0.0.1:3000/agent-events')).out,
    ).toBe('401')
  })

  test.skipIf(!hasKustomize)(
    'leads to a pod with the app and the sidecar, and a configuration that loads',
    async () => {
      const story = await begin()
      const at = (file: string): string => path.join(story.folder, file)
      await cp(path.join(ROOT, 'config/kubernetes'), at('config/kubernetes'), { recursive: true })
      const [secret] = group('first')
      if (secret === undefined) throw new Error('README makes no secret')
      await story.play(secret)
      await play(story, 'pod')
      const rendered = await valid(at('manifests.yaml'))
      const pod = podOf(rendered)
      expect(pod).toMatchObject({
        containers: [{ name: 'shop', env: [{ name: 'CALLBACK_SECRET' }] }],
        initContainers: [
          { name: 'agent-session-sidecar', image: 'registry.example.com/agent-session-sidecar:0.1.0' },
        ],
      })
      // The app and the sidecar have the same secret, under the name that kustomize gave it.
      const [, name] =
        /"secretKeyRef":\{"key":"callback-secret","name":"([^"]+)"\}/.exec(JSON.stringify(pod)) ?? []
      expect(name).toMatch(/^agent-session-sidecar-[a-z0-9]{10}$/)
      expect(JSON.stringify(pod)).toContain(`"secretName":"${name}"`)
      expect(rendered).toContainEqual(
        expect.objectContaining({
          kind: 'Secret',
          metadata: { name },
          // Without the end of the line, which some decoders of base64 refuse.
          data: expect.objectContaining({ 'callback-secret': await base64Line(at('secret.txt')) }),
        }),
      )
      expect((await configIn(story)).warnings).toEqual([])
      const image = 'registry.example.com/agent-session-sidecar:0.1.0'
      const standalone = await valid(at('standalone.yaml'))
      expect(standalone.filter((one) => JSON.stringify(one).includes(image))).toMatchObject([
        { kind: 'StatefulSet' },
      ])
      // As the document says of the third set.
      const file = at('standalone/kustomization.yaml')
      await writeFile(file, (await readFile(file, 'utf8')).replace('/standalone]', '/replicas]'))
      await story.run('cp config/kubernetes/replicas/configuration.yaml standalone/sidecar.yaml')
      await story.run('kubectl kustomize standalone > standalone.yaml')
      const replicas = await valid(at('standalone.yaml'))
      expect(replicas.filter((one) => JSON.stringify(one).includes(image))).toMatchObject([
        { kind: 'Deployment', spec: { replicas: 3 } },
      ])

      await play(story, 'webhooks')
      const exposed = await valid(at('manifests.yaml'))
      expect(exposed.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['Service', 'Ingress']))
      const service = exposed.find(({ kind }) => kind === 'Service')
      const deployment = exposed.find(({ kind }) => kind === 'Deployment')
      expect(deployment?.spec.template?.metadata.labels).toEqual(service?.spec.selector)
      const { config, warnings } = await configIn(story)
      expect(warnings).toEqual([])
      const { listen, path: route, publicUrl } = config.webhooks
      expect(service?.spec.ports).toEqual([expect.objectContaining({ targetPort: listen.port })])
      expect(JSON.stringify(exposed)).toContain(`"path":"${route}","pathType":"Exact"`)
      expect(JSON.stringify(exposed)).toContain(`"host":"${new URL(publicUrl ?? '').host}"`)
    },
  )

  test('selects sessions by a scope that loads', async () => {
    const [scope] = group('scope')
    const story = await begin()
    const file = path.join(story.folder, 'scope.yaml')
    await writeFile(file, `service: { base_url: "http://127.0.0.1:9", token: x }\n${scope?.text}`)
    const { config } = await loadConfig(file, {})
    expect(config.scope).toEqual({ metadata: { app: 'billing' }, createdByToken: ['tok_1'] })
  })

  test.runIf(FULL)('stores in a database of PostgreSQL', async () => {
    const [sql, local] = group('postgres')
    const [remote] = group('postgres-tls')
    const story = await begin()
    const at = (name: string): string => path.join(story.folder, name)
    for (const block of group('first').slice(0, 2)) await story.play(block)
    const config = await readFile(at('sidecar.yaml'), 'utf8')
    await writeFile(at('database-password'), 'change-me')

    await writeFile(at('database-ca.pem'), CERTIFICATE.cert)
    await writeFile(at('tls.yaml'), config + remote?.text.replaceAll('/run/secrets/', `${story.folder}/`))
    const { config: loaded, warnings } = await loadConfig(at('tls.yaml'), {})
    expect([loaded.store.url, warnings]).toMatchObject([{ kind: 'postgres', password: 'change-me' }, []])

    const server = await PostgresServer.start()
    try {
      for (const statement of sql?.text.trim().split('\n') ?? []) await administer(server.url(), statement)
      await writeFile(at('sidecar.yaml'), config + local?.text.replace('5432', String(server.port)))
      await story.start('npm start -- emulate', '4010')
      await story.start('npm start -- run -c sidecar.yaml', '8481')
      expect((await story.run('npm start -- status')).code).toBe(0)
      expect((await story.run('npm start -- store check -c sidecar.yaml')).code).toBe(0)
      expect(await story.stop()).toEqual([0, 0])
    } finally {
      await server.stop()
    }
  })

  test('answers function tools, one at once and one later', async () => {
    const story = await begin()
    await play(story, 'tools')
    await expect
      .poll(async () => (await story.run('npm start -- calls --json')).out)
      .toMatch(/"state":"answered".*\n.*"state":"answered"/)
  })

  test('runs the sidecar as a library', async () => {
    const story = await begin()
    const [app] = group('library')
    if (app === undefined) throw new Error('README has no library example')
    await story.play(app)
    await story.start('npm start -- emulate', '4010')
    const output = await story.start('node app.ts', '8481')
    await expect.poll(output).toContain('declare on a session')
    const tools = output().split('declare on a session: ')[1]?.trim() ?? ''
    const body = JSON.stringify({
      title: 'From the library',
      agent: { tools: JSON.parse(tools) as unknown },
      input: { text: 'call lookup_order {"order_id":"42"}' },
    })
    await story.run(
      `curl -sf http://127.0.0.1:4010/v1/sessions -H 'Authorization: Bearer svc_pat_dev' -H 'Content-Type: application/json' -d '${body}'`,
    )
    await story.says('call_1 42 runs for the first time\ncompleted From the library attempt 1')
    expect(await story.end()).toEqual([0, 0])
  })

  test.runIf(FULL)('runs handlers and tools of a module', async () => {
    const story = await begin()
    for (const block of group('module')) await story.play(block)
    await story.start('npm start -- emulate', '4010')
    const output = await story.start('npm start -- run -c module.yaml', '8481')
    const { out } = await story.run('curl -sf http://127.0.0.1:8481/api/tools')
    const { data } = JSON.parse(out) as { data: unknown }
    const body = JSON.stringify({
      title: 'From a module',
      agent: { tools: data },
      input: { text: 'call lookup_order {"order_id":"42"}' },
    })
    await story.run(
      `curl -sf http://127.0.0.1:4010/v1/sessions -H 'Authorization: Bearer svc_pat_dev' -H 'Content-Type: application/json' -d '${body}'`,
    )
    await expect.poll(output).toContain('completed From a module')
    expect(await story.end()).toEqual([0, 0])
  })

  test('drives the emulator with curl, and starts it in a test', async () => {
    const story = await begin()
    const results: Result[] = []
    for (const block of group('curl')) {
      if (block.words.includes('run')) results.push(await story.run(block.text))
      else if (!block.words.includes('shows')) await story.play(block)
    }
    const shown = group('curl').find(({ words }) => words.includes('shows'))
    expect(results.map(({ code }) => code)).toEqual([0, 0])
    expect(results[0]?.out.replaceAll(/call_[0-9a-f]+/g, 'call_…')).toBe(shown?.text)
    expect(results[1]?.out).toContain('pass 1')
    expect(await story.end()).toEqual([0])
  })

  test.runIf(FULL)('drives sessions with the client', async () => {
    const story = await begin()
    const results: Result[] = []
    const shown: Result[] = []
    for (const block of group('client')) {
      if (block.words.includes('run')) results.push(await story.run(block.text))
      else if (block.words.includes('shows')) shown.push({ code: 0, out: block.text, err: '' })
      else await story.play(block)
    }
    expect(results).toEqual(shown)
    expect(await story.end()).toEqual([0])
  })
})

/** A line of the demonstration: times, ids, counts and the channel that was first differ from run to run. */
function demonstrated(line: string): RegExp {
  if (line.trim() === '') return /^/
  const words = line.trim().split(/ {2,}/)
  const loose = words.map((word) =>
    word
      .replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
      .replace(/^\d+\\\.\d{3}$/, '[\\d.]+')
      .replace(/^\d+ ms$/, '[\\d.]+ (?:ms|s)')
      .replace(/^(stream|webhook|poll)$/, '(?:stream|webhook|poll)')
      .replaceAll(/(call|evt)_\S+/g, '$1_\\S+')
      .replace(/process \d+/, 'process \\d+')
      .replace(/^✓ \d+ of \d+ (facts|that)/, '✓ \\d+ of \\d+ $1')
      // Callbacks that were accepted shortly before a kill come again as well.
      .replace(
        /1 callback came again, with the same id: /,
        '\\d+ callbacks? came again, with the same id: .*',
      ),
  )
  return new RegExp(loose.join('(?: +[\\d.]+ m?s)? +'))
}
