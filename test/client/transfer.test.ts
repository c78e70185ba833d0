import { createWriteStream } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createClient } from '../../src/client/index.ts'
import type { FileInput } from '../../src/client/index.ts'
import { listen } from '../support/listen.ts'
import { faultOf, PROFILES, quickClock, stand, until } from './support.ts'

const MIB = 1024 * 1024

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'client-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

describe.each(PROFILES)('files (profile %s)', (profile) => {
  it('come from text, bytes, streams and this machine, and arrive byte for byte', async () => {
    const { client } = await stand(profile)
    const { id } = await client.sessions.create()
    const path = join(await folder(), 'local.bin')
    const bytes = Uint8Array.from({ length: 100_001 }, (_, index) => index * 7)
    await writeFile(path, bytes)
    const inOddPieces = async function* () {
      for (let at = 0; at < bytes.length; at += 1001) yield bytes.subarray(at, at + 1001)
    }
    const files: FileInput[] = [
      { path: 'text', content: 'grün' },
      { path: 'bytes', content: bytes },
      { path: 'blob', content: new Blob([bytes]) },
      { path: 'web', content: new Response(bytes).body ?? '' },
      { path: 'node', content: Readable.from(inOddPieces()) },
      { path: 'pieces', content: inOddPieces() },
      { path: 'local', from: path },
      { path: 'empty', content: '' },
    ]
    const written = await client.files.write(id, files)
    expect(written.map((file) => [file.path, file.size_bytes])).toEqual([
      ['text', 5],
      ...['bytes', 'blob', 'web', 'node', 'pieces', 'local'].map((name) => [name, bytes.length]),
      ['empty', 0],
    ])
    await client.files.refresh(id)
    expect((await client.files.read(id, 'text')).content).toBe('grün')
    for (const { path: name } of files.slice(1, -1)) {
      const { content, encoding } = await client.files.read(id, name)
      expect(encoding).toBe('base64')
      expect(Buffer.from(content, 'base64').equals(bytes)).toBe(true)
    }
  })

  it('go in as many requests as it takes', async () => {
    const { client } = await stand(profile)
    const { id } = await client.sessions.create()
    const many = Array.from({ length: 120 }, (_, index) => ({
      path: `many/${index}`,
      content: Buffer.alloc(index < 6 ? 400_000 : 10, index),
    }))
    const written = await client.files.write(id, many)
    expect(written.map(({ path }) => path)).toEqual(many.map(({ path }) => path))
    expect((await client.files.list(id, { refresh: true })).data).toHaveLength(120)
  })

  it('that fit no request are refused by name before a byte is sent', async () => {
    const { client } = await stand(profile)
    const { id } = await client.sessions.create()
    let pulled = 0
    const endless = async function* () {
      for (;;) {
        pulled += 64 * 1024
        yield new Uint8Array(64 * 1024)
      }
    }
    expect(
      await faultOf(client.files.write(id, [{ path: 'endless.log', content: endless() }])),
    ).toMatchObject({
      code: 'file_too_large',
      status: 0,
      operation: 'writeFiles',
      message: expect.stringMatching(/^endless\.log is larger than the 786\d+ bytes/),
    })
    expect(pulled).toBeLessThan(MIB)
    expect((await client.files.list(id, { refresh: true })).data).toEqual([])
    const most = Buffer.alloc(786_300)
    expect(await client.files.write(id, [{ path: 'most', content: most }])).toMatchObject([
      { size_bytes: 786_300 },
    ])
  })

  it('of this machine that do not exist are named in the error', async () => {
    const { client } = await stand(profile)
    const { id } = await client.sessions.create()
    expect(await faultOf(client.files.write(id, [{ path: 'a', from: '/no/such/file' }]))).toMatchObject({
      code: 'file_unreadable',
      message: expect.stringContaining('/no/such/file'),
    })
  })

  it('may be written together with the session, up to its own ceiling', async () => {
    const { client } = await stand(profile)
    const content = Buffer.alloc(1_500_000, 'x')
    const { id } = await client.sessions.create({
      environment: {
        files: [
          { path: 'a', content },
          { path: 'b', content },
        ],
      },
    })
    await client.files.refresh(id)
    const listing = await client.files.list(id)
    expect(listing.data.map(({ size_bytes: size }) => size)).toEqual([1_500_000, 1_500_000])
    const large = { path: 'c', content: Buffer.alloc(13 * MIB) }
    expect(await faultOf(client.sessions.create({ environment: { files: [large] } }))).toMatchObject({
      code: 'file_too_large',
    })
    expect(emulatorSessions(await client.sessions.list().page())).toEqual([id])
  })

  it('are written when the workspace is back after new tools', async () => {
    const { client } = await stand(profile, { limits: { bridgeRestartMs: 300 } })
    const { id } = await client.sessions.create()
    await client.files.write(id, [{ path: 'a', content: 'a' }])
    await client.tools.replace(id, { tools: [] })
    expect(await client.files.write(id, [{ path: 'b', content: 'b' }])).toMatchObject([{ path: 'b' }])
  })

  it('are refused when the workspace restarts for longer than the app waits', async () => {
    const { client } = await stand(profile, { limits: { bridgeRestartMs: 60_000 } })
    const { id } = await client.sessions.create()
    await client.tools.replace(id, { tools: [] })
    expect(
      await faultOf(client.files.write(id, [{ path: 'c', content: 'c' }], { timeout: 500 })),
    ).toMatchObject({ code: 'conflict' })
  })

  it('that a turn published are saved as they come', async () => {
    const { client } = await stand(profile)
    const { id } = await client.sessions.create()
    await client.run(id, 'write outputs/report.txt the report', { interval: 10 })
    const [artifact] = (await client.artifacts.list(id).page()).data
    const target = join(await folder(), 'report.txt')
    const { body } = await client.artifacts.download(id, artifact?.id ?? '')
    await pipeline(body, createWriteStream(target))
    expect(await readFile(target, 'utf8')).toBe('the report')
  })
})

function emulatorSessions({ data }: { data: { id: string }[] }): string[] {
  return data.map(({ id }) => id)
}

/** A service that sends `size` bytes as fast as they are taken, and counts them. */
async function endless(size: number) {
  const sent = { bytes: 0, cut: false, open: 0 }
  const chunk = Buffer.alloc(256 * 1024, 1)
  const listening = await listen((request, response) => {
    if (request.url === '/v1/openapi.json') return void response.end('{"paths":{}}')
    sent.open++
    response.on('close', () => sent.open--)
    response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': String(size) })
    const source = Readable.from(
      (function* () {
        while (sent.bytes < size && !sent.cut) {
          sent.bytes += chunk.length
          yield chunk
        }
      })(),
      { highWaterMark: 1 },
    )
    source.pipe(response, { end: false })
    source.on('end', () => (sent.cut ? response.destroy() : response.end()))
  })
  const client = createClient({ baseUrl: listening.url, token: 'svc_pat_one' })
  onTestFinished(async () => {
    await client.close()
    await listening[Symbol.asyncDispose]()
  })
  return { client, sent }
}

it('files are read as they are sent: many pass through little memory', async () => {
  const size = 700_000
  const count = { made: 0, taken: 0, most: 0 }
  const listening = await listen((request, response) => {
    if (request.url === '/v1/openapi.json') return void response.end('{"paths":{}}')
    count.most = Math.max(count.most, count.made - count.taken)
    request.resume().on('end', () => {
      count.taken++
      response.end('[]')
    })
  })
  const client = createClient({ baseUrl: listening.url, token: 'svc_pat_one' })
  onTestFinished(async () => {
    await client.close()
    await listening[Symbol.asyncDispose]()
  })
  const files = async function* (): AsyncGenerator<FileInput> {
    for (; count.made < 100; count.made++) yield { path: `${count.made}`, content: Buffer.alloc(size) }
  }
  await client.files.write('s1', files())
  expect(count.taken).toBe(100)
  expect(count.most).toBeLessThanOrEqual(2)
})

describe('a download', () => {
  it('is never held as a whole: half a gigabyte passes through little memory', async () => {
    const { client, sent } = await endless(512 * MIB)
    const { body, size } = await client.artifacts.archive('s1')
    expect(size).toBe(512 * MIB)
    const before = process.memoryUsage().arrayBuffers
    let most = 0
    let read = 0
    for await (const chunk of body) {
      read += chunk.length
      most = Math.max(most, process.memoryUsage().arrayBuffers - before)
    }
    expect(read).toBe(512 * MIB)
    expect(most).toBeLessThan(128 * MIB)
    await until(() => (sent.open === 0 ? true : undefined))
  })

  it('is read only as fast as its reader', async () => {
    const { client, sent } = await endless(512 * MIB)
    const { body } = await client.artifacts.archive('s1')
    const reader = body.getReader()
    await reader.read()
    let last = -1
    // What the sockets hold is all that is sent ahead.
    await until(async () => {
      const settled = sent.bytes === last
      last = sent.bytes
      await new Promise((resolve) => setTimeout(resolve, 50))
      return settled && sent.bytes === last ? true : undefined
    })
    expect(sent.bytes).toBeLessThan(32 * MIB)
    await reader.cancel()
    await until(() => (sent.open === 0 ? true : undefined))
  })

  it('that breaks in the middle fails, with the class of every error', async () => {
    const { client, sent } = await endless(512 * MIB)
    const { body } = await client.artifacts.download('s1', 'art_1')
    const reader = body.getReader()
    await reader.read()
    sent.cut = true
    expect(
      await faultOf(
        (async () => {
          while (!(await reader.read()).done);
        })(),
      ),
    ).toMatchObject({ code: 'no_reply', operation: 'readArtifact' })
  })

  it('ends with its signal, also long after it began', async () => {
    const { client, sent } = await endless(512 * MIB)
    const abort = new AbortController()
    const { body } = await client.artifacts.archive('s1', { signal: abort.signal, timeout: 5000 })
    const reader = body.getReader()
    await reader.read()
    abort.abort()
    expect(
      await faultOf(
        (async () => {
          while (!(await reader.read()).done);
        })(),
      ),
    ).toMatchObject({ code: 'aborted' })
    await until(() => (sent.open === 0 ? true : undefined))
  })

  it('ends with the client', async () => {
    const { client } = await endless(512 * MIB)
    const { body } = await client.artifacts.archive('s1')
    await client.close()
    expect(await faultOf(new Response(body).text())).toMatchObject({ code: 'stopped' })
  })

  it('is tried again until it begins', async () => {
    const { client, emulator } = await stand('a')
    const { id } = await client.sessions.create()
    emulator.faults.set({ server_errors: 2 })
    const { body } = await client.artifacts.archive(id)
    expect((await new Response(body).bytes()).length).toBeGreaterThan(0)
  })

  it('that sends nothing for 45 s is aborted', async () => {
    const listening = await listen((request, response) => {
      if (request.url === '/v1/openapi.json') return void response.end('{"paths":{}}')
      response.writeHead(200).write('a beginning')
    })
    const client = createClient({ baseUrl: listening.url, token: 'svc_pat_one', clock: quickClock() })
    onTestFinished(async () => {
      await client.close()
      await listening[Symbol.asyncDispose]()
    })
    const { body } = await client.artifacts.archive('s1')
    expect(await faultOf(new Response(body).text())).toMatchObject({
      code: 'no_reply',
      message: 'nothing came for 45 s',
    })
  })
})
