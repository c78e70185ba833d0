import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from 'undici'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  codeOf,
  messageOf,
  open,
  PROFILES,
  rowsOf,
  until,
  type Bench,
  type Fields,
} from '../emulator/support.ts'

interface Download {
  status: number
  bytes: Buffer
  headers: Record<string, unknown>
}

async function download(bench: Bench, path: string): Promise<Download> {
  const response = await request(bench.emulator.baseUrl + path, {
    headers: { authorization: `Bearer ${bench.token}` },
  })
  const bytes = Buffer.from(await response.body.arrayBuffer())
  return { status: response.statusCode, bytes, headers: response.headers }
}

/** Oldest first. */
const artifactsOf = async (bench: Bench, id: string): Promise<Fields[]> =>
  rowsOf((await bench.call('GET', `${bench.path('artifacts', id)}?order=asc`)).body)

const content = (bench: Bench, id: string, artifact: Fields | undefined) =>
  download(bench, `/v1/sessions/${id}/artifacts/${String(artifact?.['id'])}/content`)

const archive = (bench: Bench, id: string) => download(bench, `/v1/sessions/${id}/artifacts/archive`)

/** Unpacks with the system's own tar. */
function untar(bytes: Buffer): { names: string[]; read(path: string): Buffer } {
  const directory = mkdtempSync(join(tmpdir(), 'archive-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const listed = execFileSync('tar', ['-xvf', '-', '-C', directory, '--no-same-owner'], {
    input: bytes,
    encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C.UTF-8' },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  return {
    names: listed.split('\n').filter((line) => line !== ''),
    read: (path) => readFileSync(join(directory, path)),
  }
}

describe.each(PROFILES)('artifacts, profile %s', (profile) => {
  const pathField = profile === 'a' ? 'path' : 'filename'

  /** A session that ran `text` as one turn, its artifacts collected. */
  async function ran(bench: Bench, text: string): Promise<string> {
    const id = await bench.session()
    await bench.send(id, text)
    await bench.settle(id)
    return id
  }

  it('ART-01 ART-02 ART-04 EVT-88 what lies under outputs is published once the turn has settled, and nothing else', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(
      id,
      'write outputs/a.csv a,b\nwrite notes.txt mine\nwrite /workspace/outputs/deep/b 3KiB\nhang',
    )
    await until(() =>
      bench.events(id).filter((type) => type === 'file.changed').length === 3 ? true : undefined,
    )
    expect(await artifactsOf(bench, id)).toEqual([])
    const [turn] = await bench.turns(id)
    await bench.call('POST', bench.path('cancel', id, String(turn?.['id'])))
    await bench.settle(id)
    const artifacts = await artifactsOf(bench, id)
    expect(artifacts.map((artifact) => artifact[pathField])).toEqual(['outputs/a.csv', 'outputs/deep/b'])
    for (const artifact of artifacts) expect(artifact['id']).toMatch(/^art_/)
    expect(bench.events(id).slice(-3)).toEqual(['turn.ended', 'artifact.created', 'artifact.created'])
  })

  it('ART-01 a file that the client put under outputs is published with the next turn, once', async () => {
    const bench = await open(profile)
    const id = await ran(bench, 'say hello')
    const data = Buffer.from('mine').toString('base64')
    await bench.call('POST', `/v1/sessions/${id}/files`, {
      files: [{ type: 'inline', path: 'outputs/mine.txt', data }],
    })
    for (const text of ['say again', 'say once more']) {
      await bench.send(id, text)
      await bench.reach(id, 'idle')
      await bench.settle(id)
    }
    const artifacts = await artifactsOf(bench, id)
    expect(artifacts.map((artifact) => artifact[pathField])).toEqual(['outputs/mine.txt'])
  })

  it('ART-03 STA-26 artifacts outlive the workspace that they were written in', async () => {
    const bench = await open(profile)
    const id = await ran(bench, 'write outputs/a.txt hi')
    await bench.send(id, 'hang')
    await until(async () => ((await bench.turns(id)).length === 2 ? true : undefined))
    await bench.emulator.advance(2 * 3_600_000)
    await bench.reach(id, 'failed')
    const [artifact] = await artifactsOf(bench, id)
    expect((await content(bench, id, artifact)).bytes.toString()).toBe('hi')
    await bench.send(id, 'say in a new workspace')
    await bench.reach(id, 'idle')
    expect(bench.events(id).filter((type) => type === 'sandbox.created')).toHaveLength(2)
    expect((await content(bench, id, artifact)).bytes.toString()).toBe('hi')
    expect(untar((await archive(bench, id)).bytes).names).toEqual(['outputs/a.txt'])
  })

  it('ART-05 shows the turn, path, type, size and time of an artifact in the words of the profile', async () => {
    const bench = await open(profile)
    const id = await ran(bench, 'write outputs/report.csv a,b')
    const [turn] = await bench.turns(id)
    const [artifact] = await artifactsOf(bench, id)
    const common = { object: 'artifact', id: expect.any(String), session_id: id }
    const type = 'text/csv; charset=utf-8'
    const time: unknown = expect.any(Number)
    expect(artifact).toEqual(
      profile === 'a'
        ? {
            ...common,
            turn_id: turn?.['id'],
            path: 'outputs/report.csv',
            content_type: type,
            size_bytes: 3,
            created_at: time,
          }
        : {
            ...common,
            turn: turn?.['id'],
            filename: 'outputs/report.csv',
            mime_type: type,
            bytes: 3,
            published_at: time,
          },
    )
  })

  it('ART-06 ART-09 GEN-09 VER-12 serves the bytes, with the type of the artifact or the one that is described', async () => {
    const bench = await open(profile)
    const id = await ran(bench, 'write outputs/report.csv a,b\nwrite outputs/x.bin 3KiB')
    const [report, binary] = await artifactsOf(bench, id)
    const text = await content(bench, id, report)
    expect(text.bytes.toString()).toBe('a,b')
    expect(text.headers['content-type']).toBe(
      profile === 'a' ? 'text/csv; charset=utf-8' : 'application/octet-stream',
    )
    const raw = await content(bench, id, binary)
    expect(raw.headers['content-type']).toBe('application/octet-stream')
    expect(raw.bytes).toEqual(Buffer.alloc(3072))
    expect((await content(bench, id, { id: 'art_none' })).status).toBe(404)
    const other = await bench.session()
    expect((await content(bench, other, report)).status).toBe(404)
  })

  it('AUT-37 artifacts are read with artifacts:read and nothing less', async () => {
    const bench = await open(profile)
    const id = await ran(bench, 'write outputs/a.txt hi')
    const [artifact] = await artifactsOf(bench, id)
    const places = [
      bench.path('artifacts', id),
      `/v1/sessions/${id}/artifacts/archive`,
      `/v1/sessions/${id}/artifacts/${String(artifact?.['id'])}/content`,
    ]
    bench.token = bench.emulator.mintToken(['sessions:read', 'sessions:write', 'tools:respond']).token
    for (const place of places) {
      const refused = await bench.call('GET', place)
      expect([refused.status, messageOf(refused)]).toEqual([403, expect.stringContaining('artifacts:read')])
    }
    bench.token = bench.emulator.mintToken(['artifacts:read']).token
    for (const place of places) expect((await bench.call('GET', place)).status).toBe(200)
  })

  it('ART-07 ART-08 GEN-10 VER-11 the archive is a stream that tar unpacks: long names, other alphabets, many blocks', async () => {
    const bench = await open(profile)
    const long = `outputs/${'d'.repeat(60)}/${'ü'.repeat(60)}.txt`
    const id = await ran(
      bench,
      [
        'write outputs/a.txt first',
        `write ${long} second`,
        'write outputs/grüße.txt third',
        'write outputs/b 1MiB',
      ].join('\n'),
    )
    await bench.send(id, 'write outputs/a.txt as the second turn left it')
    await until(async () => ((await artifactsOf(bench, id)).length === 5 ? true : undefined))
    const { bytes, headers } = await archive(bench, id)
    expect(headers['content-type']).toBe('application/x-tar')
    expect(headers).not.toHaveProperty('content-length')
    const { names, read } = untar(bytes)
    expect(names.toSorted()).toEqual(['outputs/a.txt', 'outputs/b', long, 'outputs/grüße.txt'].toSorted())
    expect(read('outputs/a.txt').toString()).toBe('as the second turn left it')
    expect(read(long).toString()).toBe('second')
    expect(read('outputs/grüße.txt').toString()).toBe('third')
    expect(read('outputs/b')).toEqual(Buffer.alloc(1024 * 1024))
  })

  it('ART-07 the archive of no artifacts is an empty one, and of no session is not found', async () => {
    const bench = await open(profile)
    expect(untar((await archive(bench, await bench.session())).bytes).names).toEqual([])
    expect((await archive(bench, 'none')).status).toBe(404)
  })

  it('ART-10 lists a page at a time, at the place that the profile has', async () => {
    const bench = await open(profile)
    const id = await ran(bench, ['a', 'b', 'c'].map((name) => `write outputs/${name} x`).join('\n'))
    const place = `/v1/sessions/${id}/${profile === 'a' ? 'artifacts' : 'outputs'}`
    expect(bench.path('artifacts', id)).toBe(place)
    const first = (await bench.call('GET', `${place}?limit=2&order=asc`)).body
    expect(first).toMatchObject({ object: 'list', has_more: true })
    const rest = (await bench.call('GET', `${place}?order=asc&after=${String(first['last_id'])}`)).body
    expect([...rowsOf(first), ...rowsOf(rest)].map((row) => row[pathField])).toEqual([
      'outputs/a',
      'outputs/b',
      'outputs/c',
    ])
    expect((await bench.call('GET', place.replace(id, 'none'))).status).toBe(404)
  })

  it('ART-11 AUT-23 is deleted by who may write, at the place that the profile has, and is gone', async () => {
    const bench = await open(profile)
    const id = await ran(bench, 'write outputs/a.txt hi\nwrite outputs/b.txt ho')
    const [artifact] = await artifactsOf(bench, id)
    const artifactId = String(artifact?.['id'])
    const place = profile === 'a' ? `/v1/sessions/${id}/artifacts/${artifactId}` : `/v1/outputs/${artifactId}`
    expect(bench.path('artifact', id, artifactId)).toBe(place)
    const owner = bench.token
    bench.token = bench.emulator.mintToken(['sessions:read', 'artifacts:read']).token
    const refused = await bench.call('DELETE', place)
    expect([refused.status, codeOf(refused)]).toEqual([403, 'permission_denied'])
    expect(messageOf(refused)).toContain('sessions:write')
    bench.token = owner
    const before = Number((await bench.read(id))['updated_at'])
    expect((await bench.call('DELETE', place)).body).toEqual({
      object: 'artifact',
      id: artifactId,
      deleted: true,
    })
    expect(Number((await bench.read(id))['updated_at'])).toBeGreaterThan(before)
    expect((await artifactsOf(bench, id)).map((row) => row[pathField])).toEqual(['outputs/b.txt'])
    expect((await content(bench, id, artifact)).status).toBe(404)
    expect(untar((await archive(bench, id)).bytes).names).toEqual(['outputs/b.txt'])
    expect((await bench.call('DELETE', place)).status).toBe(404)
  })

  it('LIM-54 LIM-55 LIM-56 LIM-57 LIM-58 TRN-14 TRN-16 TRN-17 TRN-18 TRN-25 files past a ceiling are named with the reason and the turn still succeeds', async () => {
    const bench = await open(profile, { limits: { artifactBytes: 1000, artifactsTotalBytes: 1500 } })
    const id = await bench.session()
    await bench.send(
      id,
      'write outputs/a 900B\nwrite outputs/b 2KiB\nwrite outputs/c 700B\nwrite outputs/d 600B',
    )
    expect(await bench.settle(id)).toMatchObject({
      status: 'completed',
      artifacts: 'partial',
      artifacts_skipped: [
        { path: 'outputs/b', reason: 'larger than 1000 bytes' },
        { path: 'outputs/c', reason: 'all artifacts together are larger than 1500 bytes' },
      ],
    })
    const names = async () => (await artifactsOf(bench, id)).map((row) => row[pathField])
    expect(await names()).toEqual(['outputs/a', 'outputs/d'])
    const [first] = await artifactsOf(bench, id)
    await bench.call('DELETE', bench.path('artifact', id, String(first?.['id'])))
    await bench.send(id, 'write outputs/e 900B')
    await until(async () => ((await names()).includes('outputs/e') ? true : undefined))
    const { artifactBytes, artifactsTotalBytes } = bench.details.limits
    expect([artifactBytes, artifactsTotalBytes]).toEqual(
      profile === 'a' ? [10_485_760, 52_428_800] : [8_388_608, 33_554_432],
    )
  })

  it('TRN-15 a collection that fails publishes nothing and names what it left', async () => {
    const bench = await open(profile)
    bench.emulator.faults.set({ fail_artifacts: 1 })
    const id = await bench.session()
    await bench.send(id, 'write outputs/a.txt hi')
    expect(await bench.settle(id)).toMatchObject({
      status: 'completed',
      artifacts: 'failed',
      artifacts_skipped: [{ path: 'outputs/a.txt', reason: 'the collection failed' }],
    })
    expect(await artifactsOf(bench, id)).toEqual([])
  })
})
