import { request } from 'undici'
import { describe, expect, it } from 'vitest'
import { open, PROFILES, rowsOf, type Bench } from './support.ts'

async function bytesOf(bench: Bench, path: string): Promise<{ bytes: Buffer; type: unknown }> {
  const response = await request(bench.emulator.baseUrl + path, {
    headers: { authorization: `Bearer ${bench.token}` },
  })
  return { bytes: Buffer.from(await response.body.arrayBuffer()), type: response.headers['content-type'] }
}

describe.each(PROFILES)('artifacts, profile %s', (profile) => {
  it('ART-01 ART-02 ART-04 ART-06 ART-09 ART-10 EVT-88 VER-12 publishes what is under outputs and serves its bytes', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(
      id,
      'write outputs/report.csv a,b\nwrite notes.txt mine\nwrite /workspace/outputs/deep/x.bin 3KiB',
    )
    await bench.settle(id)
    const artifacts = rowsOf((await bench.call('GET', `${bench.path('artifacts', id)}?order=asc`)).body)
    const name = profile === 'a' ? 'path' : 'filename'
    expect(artifacts.map((artifact) => artifact[name])).toEqual(['outputs/report.csv', 'outputs/deep/x.bin'])
    expect(artifacts[0]?.['id']).toMatch(/^art_/)
    expect(bench.events(id).filter((type) => type === 'artifact.created')).toHaveLength(2)
    const content = await bytesOf(
      bench,
      `/v1/sessions/${id}/artifacts/${String(artifacts[0]?.['id'])}/content`,
    )
    expect(content.bytes.toString()).toBe('a,b')
    expect(content.type).toBe(profile === 'a' ? 'text/csv; charset=utf-8' : 'application/octet-stream')
    const big = await bytesOf(bench, `/v1/sessions/${id}/artifacts/${String(artifacts[1]?.['id'])}/content`)
    expect(big.bytes).toEqual(Buffer.alloc(3072))
  })

  it('ART-07 ART-08 the archive is a tar of every artifact, long paths included', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const long = `outputs/${'d'.repeat(60)}/${'f'.repeat(60)}.txt`
    await bench.send(id, `write outputs/a.txt first\nwrite ${long} second`)
    await bench.settle(id)
    const { bytes, type } = await bytesOf(bench, `/v1/sessions/${id}/artifacts/archive`)
    expect(type).toBe('application/x-tar')
    expect(readTar(bytes)).toEqual(
      new Map([
        ['outputs/a.txt', 'first'],
        [long, 'second'],
      ]),
    )
  })

  it('LIM-54 LIM-55 LIM-56 LIM-57 LIM-58 TRN-14 TRN-17 TRN-18 files past a ceiling are named and the turn still succeeds', async () => {
    const bench = await open(profile, { limits: { artifactBytes: 1000, artifactsTotalBytes: 1500 } })
    const id = await bench.session()
    await bench.send(
      id,
      'write outputs/a 900B\nwrite outputs/b 2KiB\nwrite outputs/c 700B\nwrite outputs/d 600B',
    )
    const turn = await bench.settle(id)
    expect(turn).toMatchObject({
      status: 'completed',
      artifacts: 'partial',
      artifacts_skipped: [
        { path: 'outputs/b', reason: 'larger than 1000 bytes' },
        { path: 'outputs/c', reason: 'all artifacts together are larger than 1500 bytes' },
      ],
    })
    expect(bench.emulator.ledger().turns[0]?.published).toEqual(['outputs/a', 'outputs/d'])
  })

  it('TRN-15 the fault fail_artifacts fails a collection', async () => {
    const bench = await open(profile)
    bench.emulator.faults.set({ fail_artifacts: 1 })
    const id = await bench.session()
    await bench.send(id, 'write outputs/a.txt hi')
    expect(await bench.settle(id)).toMatchObject({ status: 'completed', artifacts: 'failed' })
  })

  it('ART-11 AUT-23 an artifact is deleted by who may write, and is gone', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'write outputs/a.txt hi')
    await bench.settle(id)
    const [artifact] = rowsOf((await bench.call('GET', bench.path('artifacts', id))).body)
    const place = bench.path('artifact', id, String(artifact?.['id']))
    const owner = bench.token
    bench.token = bench.emulator.mintToken(['sessions:read', 'artifacts:read']).token
    expect((await bench.call('DELETE', place)).status).toBe(403)
    bench.token = owner
    expect((await bench.call('DELETE', place)).body).toMatchObject({ object: 'artifact', deleted: true })
    expect(rowsOf((await bench.call('GET', bench.path('artifacts', id))).body)).toEqual([])
    expect((await bench.call('DELETE', place)).status).toBe(404)
  })

  it('a write outside the workspace fails the turn', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'write ../../etc/passwd hi')
    expect((await bench.settle(id))['status']).toBe('failed')
  })
})

/** Reads a ustar archive with pax paths, by the format's own description. */
function readTar(bytes: Buffer): Map<string, string> {
  const files = new Map<string, string>()
  let longPath: string | undefined
  for (let at = 0; at < bytes.length && bytes[at] !== 0;) {
    const header = bytes.subarray(at, at + 512)
    const sum = Number.parseInt(header.toString('latin1', 148, 154), 8)
    const blank = Buffer.from(header).fill(32, 148, 156)
    expect(blank.reduce((total, byte) => total + byte, 0)).toBe(sum)
    expect(header.toString('latin1', 257, 265)).toBe('ustar\u000000')
    const size = Number.parseInt(header.toString('latin1', 124, 135), 8)
    const body = bytes.toString('utf8', at + 512, at + 512 + size)
    if (header.toString('latin1', 156, 157) === 'x') {
      const record = /^(\d+) path=([^\n]*)\n$/.exec(body)
      if (Number(record?.[1]) !== size) throw new Error('a pax record that lies about its length')
      longPath = record?.[2]
    } else {
      files.set(longPath ?? header.toString('utf8', 0, 100).replace(/\0+$/, ''), body)
      longPath = undefined
    }
    at += 512 + Math.ceil(size / 512) * 512
  }
  return files
}
