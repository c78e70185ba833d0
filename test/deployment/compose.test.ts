import { spawn, type ChildProcess } from 'node:child_process'
import path from 'node:path'
import { request } from 'undici'
import { afterEach, expect, test } from 'vitest'
import { folderWith } from '../config/folder.ts'
import { freePort } from '../support/listen.ts'
import { until } from '../support/until.ts'
import { command, documents, ROOT } from './documents.ts'

interface Compose {
  services: Record<
    string,
    {
      command?: string[]
      environment?: Record<string, string>
      volumes?: string[]
      build?: string
      image: string
      pull_policy?: string
      read_only?: boolean
    }
  >
}

const [compose] = documents<Compose>('config/compose.yaml')

test('the image of the sidecar is built once, and never pulled', () => {
  const ours = Object.values(compose?.services ?? {}).filter(({ image }) => image.startsWith('agent-session'))
  expect(ours.map(({ build, pull_policy: pull }) => [build, pull])).toEqual([
    [undefined, 'never'],
    ['..', undefined],
  ])
})

const children: ChildProcess[] = []

afterEach(async () => {
  await Promise.all(
    children.splice(0).map(async (child) => {
      const ended = new Promise((resolve) => child.once('close', resolve))
      child.kill('SIGKILL')
      await ended
    }),
  )
})

/** Starts a service as its container would be, on loopback and with ports of ours. @returns what it wrote. */
function startService(name: string, ports: Record<string, number>, cwd: string): () => string {
  const service = compose?.services[name]
  if (service === undefined) throw new Error(`there is no service ${name}`)
  const here = (text: string): string =>
    Object.entries(ports)
      .reduce((moved, [port, other]) => moved.replaceAll(port, String(other)), text)
      .replaceAll(/\$\{\w+:-([^}]*)\}/g, '$1')
      .replaceAll(/\b(service|app|0\.0\.0\.0):(?=\d)/g, '127.0.0.1:')
  const folders: Record<string, string> = {
    'dist/main.js': path.join(ROOT, 'src/main.js'),
    '/etc/sidecar/sidecar.yaml': path.join(ROOT, 'config/compose/sidecar.yaml'),
    '/app/app.mjs': path.join(ROOT, 'config/compose/app.mjs'),
  }
  const [program = '', ...args] = (service.command ?? command()).map((word) => folders[word] ?? here(word))
  const env = Object.entries(service.environment ?? {}).map(([key, value]) => [key, here(value)])
  const child = spawn(program, args, {
    cwd,
    // As in the image, the store is not beside the configuration: here it would be left in the repository.
    env: {
      PATH: process.env['PATH'],
      SIDECAR_STORE_BASE: cwd,
      ...(Object.fromEntries(env) as Record<string, string>),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  return () => output
}

test('the composed services work together: an event is taken, a tool answers', async () => {
  const ports = { '4010': await freePort(), '3000': await freePort(), '8481': await freePort() }
  const folder = await folderWith({})
  startService('service', ports, folder)
  const app = startService('app', ports, folder)
  const sidecar = startService('sidecar', ports, folder)
  const admin = `http://127.0.0.1:${ports['8481']}`
  // The sidecar may be there before the service.
  for (const url of [`${admin}/startupz`, `http://127.0.0.1:${ports['4010']}/v1/openapi.json`]) {
    await until(
      url,
      async () => {
        const answer = await request(url).catch(() => null)
        await answer?.body.dump()
        return answer?.statusCode === 200
      },
      30_000,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}: ${sidecar()}`)
    })
  }
  const created = await request(`http://127.0.0.1:${ports['4010']}/v1/sessions`, {
    method: 'POST',
    headers: { authorization: 'Bearer svc_pat_dev', 'content-type': 'application/json' },
    body: JSON.stringify({
      agent: { tools: [{ type: 'function', name: 'lookup_order', parameters: { type: 'object' } }] },
      input: { text: 'call lookup_order {"order_id":"42"}' },
    }),
  })
  expect(created.statusCode).toBe(201)
  await created.body.dump()
  await until('event', () => /^event turn\.settled /m.test(app()), 20_000)
  expect(app()).toMatch(/^tool lookup_order /m)
  // Off loopback the API wants the token that the file sets.
  const api = await request(`${admin}/api/status`)
  await api.body.dump()
  expect(api.statusCode).toBe(401)
})

test('containers that are ours write only in their volume', () => {
  const sidecar = compose?.services['sidecar']
  expect(sidecar?.read_only).toBe(true)
  expect(sidecar?.volumes).toEqual(['data:/app/data', './compose:/etc/sidecar:ro'])
})
