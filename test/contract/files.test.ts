import { describe, expect, it } from 'vitest'
import {
  codeOf,
  messageOf,
  open,
  PROFILES,
  rowsOf,
  type Bench,
  type Fields,
  type ProfileName,
} from '../emulator/support.ts'

const inline = (path: string, text: string | Buffer) => ({
  type: 'inline',
  path,
  data: Buffer.from(text).toString('base64'),
})

const place = (id: string) => `/v1/sessions/${id}/files`

const write = (bench: Bench, id: string, ...files: unknown[]) => bench.call('POST', place(id), { files })

/** A session whose workspace is up. */
async function running(bench: Bench): Promise<string> {
  const id = await bench.session()
  await bench.send(id, 'say hello')
  await bench.settle(id)
  return id
}

async function listing(bench: Bench, id: string, query = ''): Promise<Fields> {
  return (await bench.call('GET', place(id) + query)).body
}

const read = async (bench: Bench, id: string, path: string): Promise<Fields> =>
  (await bench.call('GET', `${place(id)}/content?path=${path}`)).body

/** The query that takes a snapshot first. */
const snapshotFirst = (profile: ProfileName) => (profile === 'a' ? '?refresh=1' : '?snapshot=1')

describe.each(PROFILES)('the listing of a workspace, profile %s', (profile) => {
  const snapshot = snapshotFirst(profile)

  it('FIL-01 FIL-08 FIL-09 FIL-10 FIL-11 FIL-31 distinguishes a missing snapshot from one of an empty workspace', async () => {
    const bench = await open(profile)
    const id = await running(bench)
    const none = { object: 'list', data: [], truncated: false }
    expect(await listing(bench, id)).toEqual({ ...none, state: 'missing', captured_at: null })
    const before = bench.emulator.now()
    const { captured_at, ...taken } = await listing(bench, id, snapshot)
    expect(taken).toEqual({ ...none, state: 'ready' })
    expect(captured_at).toBeGreaterThanOrEqual(before)
    expect(captured_at).toBeLessThanOrEqual(bench.emulator.now())
  })

  it('FIL-02 FIL-03 FIL-04 FIL-05 FIL-06 names each file below the workspace directory, with its size and whether it can be read', async () => {
    const bench = await open(profile, { limits: { artifactBytes: 1024 } })
    const id = await bench.session()
    await bench.send(id, 'write /workspace/src/a.txt grüße\nwrite huge.bin 2KiB')
    await bench.settle(id)
    const file = { object: 'workspace_file', type: 'file' }
    expect(rowsOf(await listing(bench, id, snapshot))).toEqual([
      { ...file, path: 'src/a.txt', size_bytes: 7, readable: true },
      { ...file, path: 'huge.bin', size_bytes: 2048, readable: false },
    ])
    expect((await bench.call('GET', `${place(id)}/content?path=huge.bin`)).status).toBe(404)
  })

  it('FIL-07 FIL-13 FIL-29 FIL-30 is that of the last snapshot, whatever was written since', async () => {
    const bench = await open(profile)
    const id = await running(bench)
    await write(bench, id, inline('a.txt', 'one'))
    const refreshed = await bench.call('POST', `${place(id)}/refresh`)
    expect(refreshed.status).toBe(200)
    const state = { state: 'ready', captured_at: expect.any(Number) }
    const [first] = rowsOf(await listing(bench, id))
    expect(refreshed.body).toEqual(
      profile === 'a' ? { object: 'list', data: [first], truncated: false, ...state } : state,
    )
    await write(bench, id, inline('a.txt', 'longer'), inline('b.txt', 'new'))
    const { data, captured_at } = await listing(bench, id)
    expect(rowsOf(data)).toEqual([expect.objectContaining({ path: 'a.txt', size_bytes: 3 })])
    expect(captured_at).toBe(refreshed.body['captured_at'])
    expect((await read(bench, id, 'a.txt'))['content']).toBe('one')
    await bench.call('POST', `${place(id)}/refresh`)
    expect(rowsOf(await listing(bench, id))).toMatchObject([
      { path: 'a.txt', size_bytes: 6 },
      { path: 'b.txt', size_bytes: 3 },
    ])
  })

  it('FIL-32 FIL-33 a query parameter, spelled as the profile has it, takes a snapshot first', async () => {
    const bench = await open(profile)
    const id = await running(bench)
    await write(bench, id, inline('a.txt', 'x'))
    expect((await listing(bench, id))['state']).toBe('missing')
    expect(rowsOf(await listing(bench, id, snapshot))).toMatchObject([{ path: 'a.txt' }])
    const other = snapshotFirst(profile === 'a' ? 'b' : 'a')
    for (const query of [other, snapshot.replace('1', '2')]) {
      const refused = await bench.call('GET', place(id) + query)
      expect([refused.status, codeOf(refused)]).toEqual([400, 'invalid_request'])
    }
  })

  it('FIL-34 AUT-32 AUT-35 a reader may not take a snapshot, and gets no stale listing for it', async () => {
    const bench = await open(profile)
    const id = await running(bench)
    bench.token = bench.emulator.mintToken(['sessions:read']).token
    const refused = await bench.call('GET', place(id) + snapshot)
    expect([refused.status, codeOf(refused)]).toEqual([403, 'permission_denied'])
    expect(messageOf(refused)).toContain('sessions:write')
    expect((await listing(bench, id))['state']).toBe('missing')
    bench.token = bench.emulator.mintToken(['artifacts:read']).token
    expect(messageOf(await bench.call('GET', place(id)))).toContain('sessions:read')
  })

  it('FIL-11 FIL-12 LIM-60 stops at a ceiling of bytes, which the profiles put differently, and says so', async () => {
    const bench = await open(profile, { limits: { listingBytes: 10 } })
    const id = await running(bench)
    await write(bench, id, inline('aaaa', ''), inline('bbbbbb', ''))
    expect((await listing(bench, id, snapshot))['truncated']).toBe(false)
    await write(bench, id, inline('c', ''))
    const { data, truncated } = await listing(bench, id, snapshot)
    expect([rowsOf(data).length, truncated]).toEqual([2, true])
    expect(bench.details.limits.listingBytes).toBe(profile === 'a' ? 262_144 : 131_072)
  })
})

describe.each(PROFILES)('the content of a workspace file, profile %s', (profile) => {
  const snapshot = snapshotFirst(profile)

  it('FIL-14 FIL-15 FIL-16 FIL-17 FIL-18 FIL-19 FIL-20 FIL-35 FIL-36 is text as utf8, anything else as base64', async () => {
    const bench = await open(profile)
    const id = await running(bench)
    const bytes = Buffer.from([0, 255, 1, 2])
    await write(bench, id, inline('docs/a.txt', 'grüße'), inline('b.bin', bytes), inline('empty', ''))
    const { captured_at } = await listing(bench, id, snapshot)
    const common = { object: 'workspace_file.content', captured_at, truncated: false }
    expect(await read(bench, id, 'docs/a.txt')).toEqual({
      ...common,
      path: 'docs/a.txt',
      content: 'grüße',
      encoding: 'utf8',
    })
    expect(await read(bench, id, 'b.bin')).toEqual({
      ...common,
      path: 'b.bin',
      content: bytes.toString('base64'),
      encoding: 'base64',
    })
    expect(await read(bench, id, 'empty')).toMatchObject({ content: '', encoding: 'utf8' })
    for (const [query, status] of [
      ['?path=none', 404],
      ['?path=docs', 404],
      ['', 400],
      ['?path=../../etc/passwd', 400],
    ] as const) {
      expect((await bench.call('GET', `${place(id)}/content${query}`)).status).toBe(status)
    }
  })

  it('FIL-21 LIM-59 only text is cut at the inline ceiling, which the profiles put differently', async () => {
    const bench = await open(profile)
    const ceiling = bench.details.limits.inlineCharacters
    expect(ceiling).toBe(profile === 'a' ? 262_144 : 131_072)
    const id = await running(bench)
    const bytes = Buffer.alloc(ceiling + 3, 255)
    const text = 'ü'.repeat(ceiling)
    for (const file of [inline('fits', text), inline('long', `${text}!`), inline('bytes', bytes)])
      expect((await write(bench, id, file)).status).toBe(200)
    await listing(bench, id, snapshot)
    expect((await read(bench, id, 'fits'))['truncated']).toBe(false)
    const long = await read(bench, id, 'long')
    expect([long['truncated'], long['content'] === text]).toEqual([true, true])
    const whole = await read(bench, id, 'bytes')
    expect([whole['truncated'], whole['content'] === bytes.toString('base64')]).toEqual([false, true])
  })
})

describe.each(PROFILES)('writing workspace files, profile %s', (profile) => {
  const snapshot = snapshotFirst(profile)

  it('FIL-22 FIL-23 FIL-24 FIL-25 FIL-26 FIL-27 FIL-28 FIL-37 takes base64, overwrites, and lists what was written', async () => {
    const bench = await open(profile)
    const id = await running(bench)
    const bytes = Buffer.from([0, 255])
    const reply = await write(bench, id, inline('a.txt', 'one'), inline('src/b.bin', bytes))
    expect(reply.status).toBe(200)
    const entries = [
      { object: 'workspace_file', path: 'a.txt', size_bytes: 3 },
      { object: 'workspace_file', path: 'src/b.bin', size_bytes: 2 },
    ]
    expect(reply.body).toEqual(
      profile === 'a' ? { object: 'list', data: entries, has_more: false, last_id: '' } : entries,
    )
    expect((await write(bench, id, inline('a.txt', 'longer'))).status).toBe(200)
    await listing(bench, id, snapshot)
    expect((await read(bench, id, 'a.txt'))['content']).toBe('longer')
    expect((await read(bench, id, 'src/b.bin'))['content']).toBe(bytes.toString('base64'))
  })

  it('FIL-42 an entry of another type than inline is refused, or is text as it stands, as the profile has it', async () => {
    const bench = await open(profile)
    const id = await running(bench)
    const reply = await write(bench, id, { type: 'text', path: 'a.txt', data: 'grüße, as they stand' })
    const stray = await write(bench, id, { type: 'url', path: 'b.txt', data: '' })
    expect([stray.status, codeOf(stray)]).toEqual([400, 'invalid_request'])
    await listing(bench, id, snapshot)
    expect(reply.status).toBe(profile === 'a' ? 400 : 200)
    expect(messageOf(stray)).toContain(profile === 'a' ? '["inline"]' : '["inline","text"]')
    const { content } = await read(bench, id, 'a.txt')
    expect(content).toBe(profile === 'a' ? undefined : 'grüße, as they stand')
  })

  it.each([
    ['a path outside', [inline('../x', '')]],
    ['a path that is the workspace', [inline('.', '')]],
    ['data that is not base64', [{ type: 'inline', path: 'x', data: '%%%' }]],
    ['a file over the ceiling', [inline('fine', ''), inline('x', Buffer.alloc(11))]],
    ['files over the ceiling together', [inline('x', Buffer.alloc(9)), inline('y', Buffer.alloc(9))]],
    ['too many files', [inline('x', ''), inline('y', ''), inline('z', ''), inline('w', '')]],
    ['no files', []],
    ['an unknown field', [{ ...inline('x', ''), mode: '0755' }]],
  ])('FIL-39 ERR-10 refuses %s and writes nothing', async (_what, files) => {
    const bench = await open(profile, { limits: { fileBytes: 10, filesTotalBytes: 15, files: 3 } })
    const id = await running(bench)
    const reply = await write(bench, id, ...files)
    expect([reply.status, codeOf(reply)]).toEqual([400, 'invalid_request'])
    expect(rowsOf(await listing(bench, id, snapshot))).toEqual([])
  })

  it('FIL-38 counts the decoded bytes, not the base64 of them', async () => {
    const bench = await open(profile, { limits: { fileBytes: 10, filesTotalBytes: 15 } })
    const id = await running(bench)
    // Ten bytes are sixteen characters of base64.
    expect((await write(bench, id, inline('x', Buffer.alloc(10)), inline('y', Buffer.alloc(5)))).status).toBe(
      200,
    )
    expect((await write(bench, id, inline('z', Buffer.alloc(11)))).status).toBe(400)
  })

  it('FIL-40 LIM-52 LIM-53 ceilings, which the profiles put differently, hold for seeded files and leave no session behind', async () => {
    const bench = await open(profile)
    const { fileBytes, filesTotalBytes, files } = bench.details.limits
    expect([fileBytes, filesTotalBytes, files]).toEqual(
      profile === 'a' ? [4_194_304, 10_485_760, 100] : [2_097_152, 8_388_608, 64],
    )
    const half = Buffer.alloc(fileBytes)
    const tooMuch = [
      [inline('x', Buffer.alloc(fileBytes + 1))],
      Array.from({ length: Math.floor(filesTotalBytes / fileBytes) + 1 }, (_, at) => inline(`f${at}`, half)),
      Array.from({ length: files + 1 }, (_, at) => inline(`f${at}`, '')),
    ]
    for (const seeds of tooMuch) {
      const reply = await bench.call('POST', '/v1/sessions', { environment: { files: seeds } })
      expect([reply.status, codeOf(reply)]).toEqual([400, 'invalid_request'])
    }
    expect(rowsOf((await bench.call('GET', '/v1/sessions')).body)).toEqual([])
    const fits = Array.from({ length: files }, (_, at) => inline(`f${at}`, at === 0 ? half : ''))
    await bench.session({ environment: { files: fits } })
  })

  it('FIL-41 ERR-25 a workspace that is not up answers conflict, writes nothing, and is up at the next try', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const early = await write(bench, id, inline('a.txt', 'x'))
    expect([early.status, codeOf(early)]).toEqual([409, 'conflict'])
    expect(rowsOf(await listing(bench, id, snapshot))).toEqual([])
    expect((await write(bench, id, inline('a.txt', 'x'))).status).toBe(200)
  })
})
