import Database from 'better-sqlite3'
import { spawn } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startEmulator, type EmulatorOptions } from '../../src/emulator/index.ts'
import { cli, start } from '../cli/process.ts'
import { listen, type Listener } from './listener.ts'
import { receive } from './receiver.ts'
import { until as waitFor } from '../support/until.ts'
import { Bench, open, PROFILES, rowsOf, until, type Fields } from './support.ts'
import { FULL } from '../support/full.ts'

/** A place for a data file that goes with the test. */
function dataFile(): string {
  const directory = mkdtempSync(join(tmpdir(), 'emulator-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  return join(directory, 'service.db')
}

const inline = (path: string, text: string) => ({
  type: 'inline',
  path,
  data: Buffer.from(text).toString('base64'),
})

const write = (bench: Bench, id: string, path: string, text: string) =>
  bench.call('POST', `/v1/sessions/${id}/files`, { files: [inline(path, text)] })

/** The files that are in the workspace now. */
const fileNames = async (bench: Bench, id: string): Promise<unknown[]> => {
  const { snapshotQuery } = bench.details.files
  const { body } = await bench.call('GET', `/v1/sessions/${id}/files?${snapshotQuery}=1`)
  return rowsOf(body).map(({ path }) => path)
}

/** Everything that the service shows to who asks. */
async function everything(bench: Bench, ids: readonly string[]): Promise<unknown> {
  const places = [
    '/v1/health',
    '/v1/sessions',
    '/v1/webhooks',
    '/v1/model-credentials',
    '/v1/agents',
    '/v1/environment-profiles',
    ...ids.flatMap((id) => [
      `/v1/sessions/${id}`,
      `/v1/sessions/${id}/tools`,
      `/v1/sessions/${id}/turns`,
      `/v1/sessions/${id}/items?limit=100`,
      `/v1/sessions/${id}/files`,
      bench.path('artifacts', id),
      `/v1/sessions/${id}/artifacts/archive`,
    ]),
  ]
  const shown = []
  for (const place of places) {
    const { status, text } = await bench.call('GET', place)
    shown.push([place, status, text])
  }
  return shown
}

async function frames(bench: Bench): Promise<unknown[]> {
  const stream = await listen(bench, '/v1/events?last_event_id=0')
  const { last_seq } = bench.emulator.ledger()
  await until(() => (stream.frames.length === last_seq ? true : undefined))
  stream.leave()
  return stream.frames
}

describe.each(PROFILES)('a data file, profile %s', (profile) => {
  /** Ends the emulator in an orderly way and starts it again on the same file. */
  const again = async (bench: Bench, data: string, options: EmulatorOptions = {}): Promise<Bench> => {
    await bench.emulator.close()
    return open(profile, { data, ...options })
  }

  it('everything that is shown is shown again after a restart, byte for byte', async () => {
    const data = dataFile()
    const first = await open(profile, { data, allowHttpWebhooks: true })
    const { url } = await receive()
    await first.call('POST', '/v1/webhooks', { url, events: ['turn.completed'] })
    await first.call('POST', '/v1/model-credentials', { key: 'nw-1', is_default: true })
    await first.call('POST', first.details.paths.saveAgent, { name: 'support', instructions: 'Be kind.' })
    await first.call('POST', first.details.paths.saveTemplate, { name: 'bench', tools: [{ type: 'browse' }] })
    const reader = first.emulator.mintToken(['sessions:read'])
    const gone = first.emulator.mintToken(['sessions:read'])
    first.emulator.revokeToken(gone.id)
    const ids = [
      await first.session({
        title: 'one',
        metadata: { a: 'b' },
        environment: { files: [inline('seed', 'x')] },
      }),
      await first.session({ agent: { instructions: 'Be brief.', tools: [{ type: 'web_fetch' }] } }),
    ]
    for (const id of ids) {
      await first.send(id, 'say hello\nwrite outputs/a.csv a,b\nwrite src/b.bin 3KiB\npreview 8080')
      await first.settle(id)
      await first.call('POST', `/v1/sessions/${id}/files/refresh`)
      await write(first, id, 'later', 'in no snapshot')
    }
    const deleted = await first.session()
    await first.call('DELETE', `/v1/sessions/${deleted}`)
    await first.emulator.advance(86_400_000)
    const [shown, heard, { now: _, ...ledger }] = [
      await everything(first, ids),
      await frames(first),
      first.emulator.ledger(),
    ]

    const second = await again(first, data)
    expect(await everything(second, ids)).toEqual(shown)
    expect(await frames(second)).toEqual(heard)
    const { now, ...restored } = second.emulator.ledger()
    expect(restored).toEqual(ledger)
    expect(now).toBeGreaterThan(Date.now() + 86_000_000)
    for (const id of ids)
      expect(await fileNames(second, id)).toEqual(
        expect.arrayContaining(['outputs/a.csv', 'src/b.bin', 'later']),
      )
    second.token = reader.token
    expect((await second.call('GET', '/v1/sessions')).status).toBe(200)
    second.token = gone.token
    expect((await second.call('GET', '/v1/sessions')).status).toBe(401)
  })

  it('continues where it was: the next event has the next seq, a paused workspace wakes, what was deleted stays deleted', async () => {
    const data = dataFile()
    const first = await open(profile, { data })
    const id = await first.session()
    await first.send(id, 'write outputs/a.txt hi')
    await first.settle(id)
    await first.emulator.advance(600_000)
    expect(first.events(id).at(-1)).toBe('sandbox.paused')
    const [artifact] = rowsOf((await first.call('GET', first.path('artifacts', id))).body)
    await first.call('DELETE', first.path('artifact', id, String(artifact?.['id'])))
    const { last_seq } = first.emulator.ledger()

    const second = await again(first, data)
    expect(second.emulator.ledger().last_seq).toBe(last_seq)
    expect(rowsOf((await second.call('GET', second.path('artifacts', id))).body)).toEqual([])
    await second.send(id, 'say again')
    await until(() => (second.events(id).includes('sandbox.resumed') ? true : undefined))
    await second.reach(id, 'idle')
    expect(second.events(id).filter((type) => type === 'sandbox.created')).toHaveLength(1)
    expect(second.emulator.ledger(last_seq).events[0]?.seq).toBe(last_seq + 1)
  })

  it('a turn that runs at the stop fails as the workspace is reclaimed, and the next message is taken', async () => {
    const data = dataFile()
    const first = await open(profile, { data })
    const id = await first.session()
    await first.send(id, 'write outputs/early.txt hi')
    await first.settle(id)
    await first.send(id, 'call lookup {}')
    const [action] = await first.actions(id)
    await first.send(id, 'say after that')

    const second = await again(first, data)
    await until(async () => ((await second.turns(id)).length === 3 ? true : undefined))
    await second.reach(id, 'idle')
    expect((await second.turns(id)).map(({ status }) => status)).toEqual(['completed', 'failed', 'completed'])
    expect(second.emulator.ledger().turns[1]?.error?.code).toBe('workspace_reclaimed')
    expect((await second.read(id))['required_actions']).toEqual([])
    const late = await second.answer(id, { call_id: action?.['call_id'], output: 'x' })
    expect(late.body['outcome']).toBe('not_delivered')
    expect(rowsOf((await second.call('GET', second.path('artifacts', id))).body)).toHaveLength(1)
    expect(second.events(id).filter((type) => type === 'sandbox.created')).toHaveLength(2)
  })

  it('artifacts that were being collected are published, and turn.completed is sent', async () => {
    const data = dataFile()
    const { url, received } = await receive()
    const first = await open(profile, { data, allowHttpWebhooks: true })
    await first.call('POST', '/v1/webhooks', { url, events: ['turn.completed'] })
    const id = await first.session()
    await first.send(id, 'write outputs/a.txt hi\ncollect 20s')
    await first.reach(id, 'idle')
    expect((await first.turns(id))[0]?.['artifacts']).toBe('pending')

    const second = await again(first, data)
    expect((await second.settle(id))['artifacts']).toBe('ready')
    expect(rowsOf((await second.call('GET', second.path('artifacts', id))).body)).toHaveLength(1)
    await until(() => (received.length === 1 ? true : undefined))
  })

  it.each<[string, (data: string) => void]>([
    ['', () => undefined],
    // The status had another name in the first version of the file.
    [
      ', also one of a file of version 1',
      (data) =>
        new Database(data)
          .exec(`UPDATE record SET json = json_set(json, '$.status', 'o' || 'wed') WHERE kind = 'delivery'`)
          .exec('PRAGMA user_version = 1')
          .close(),
    ],
  ])('a pending delivery is tried again at its time, with the attempts that it had%s', async (_, change) => {
    const data = dataFile()
    const receiver = await receive()
    receiver.answer = 500
    const first = await open(profile, { data, allowHttpWebhooks: true })
    await first.call('POST', '/v1/webhooks', { url: receiver.url, events: ['session.created'] })
    await first.session()
    await until(() => (first.emulator.ledger().deliveries[0]?.attempts.length === 1 ? true : undefined))
    receiver.answer = 200

    await first.emulator.close()
    change(data)
    const second = await open(profile, { data, allowHttpWebhooks: true })
    expect(second.emulator.ledger().deliveries).toMatchObject([{ status: 'pending' }])
    expect(receiver.received).toHaveLength(1)
    await second.emulator.advance(6000)
    await until(() => (second.emulator.ledger().deliveries[0]?.status === 'delivered' ? true : undefined))
    expect(second.emulator.ledger().deliveries[0]?.attempts).toHaveLength(2)
    expect(receiver.received.map(({ raw }) => raw)).toEqual([
      receiver.received[0]?.raw,
      receiver.received[0]?.raw,
    ])
  })

  it('an idempotency value is still answered with its first answer', async () => {
    const data = dataFile()
    const first = await open(profile, { data })
    const key = { [first.details.idempotency.header]: 'once' }
    const made = await first.call('POST', '/v1/sessions', { title: 'one' }, key)

    const second = await again(first, data)
    const replay = await second.call('POST', '/v1/sessions', { title: 'one' }, key)
    expect([replay.status, replay.text]).toEqual([201, made.text])
    expect(rowsOf((await second.call('GET', '/v1/sessions')).body)).toHaveLength(1)
  })

  it('what is removed from memory is removed from the file too, and so are bytes that nothing refers to', async () => {
    const data = dataFile()
    const limits = { events: 100 }
    const first = await open(profile, { data, limits })
    const id = await first.session()
    await first.send(id, `write outputs/a 1MiB\nburst 1000 10`)
    await first.settle(id)
    const { first_seq, last_seq } = first.emulator.ledger()
    await first.call('DELETE', `/v1/sessions/${id}`)

    const second = await again(first, data, { limits })
    expect(second.emulator.ledger()).toMatchObject({ first_seq, last_seq })
    await second.emulator.close()
    const db = new Database(data, { readonly: true })
    const count = (table: string) => db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get()
    expect(count("record WHERE kind = 'event'")).toBe(last_seq - first_seq + 1)
    expect(count('blob WHERE length(bytes) > 0')).toBe(0)
    db.close()
  })

  it.runIf(FULL)(
    'a killed process has sent nothing that its data file lacks',
    { timeout: 180_000 },
    async () => {
      const data = dataFile()
      const heard = new Map<string, Fields>()
      const accepted: string[] = []
      const written: string[] = []
      const ids: string[] = []
      let quiet = ''
      for (let round = 0; round < 3; round++) {
        const { bench, kill } = await asProcess(profile, data)
        const stream = await replayed(bench, heard)
        // Nothing runs in this one, so that its workspace stays.
        quiet ||= await bench.session({ title: 'quiet' })
        ids.push(await bench.session({ title: `round ${round}` }))
        const work = Promise.all([
          ...ids.map((id) =>
            untilGone(`${round} in ${id}`, async (text) => {
              if ((await bench.send(id, `say ${text}`)).status === 202) accepted.push(text)
            }),
          ),
          untilGone(`${round}`, async (text) => {
            if ((await write(bench, quiet, text, 'x')).status === 200) written.push(text)
          }),
        ])
        const enough = stream.frames.length + 60
        await patiently('work', () =>
          stream.frames.length > enough && written.length > 0 ? true : undefined,
        )
        await kill()
        await work
        for (const { id, data: frame } of stream.frames) if (id !== undefined) heard.set(id, frame)
      }

      const { bench } = await asProcess(profile, data)
      const stream = await replayed(bench, heard)
      for (const [round, id] of ids.entries()) {
        expect(await bench.read(id)).toMatchObject({ title: `round ${round}` })
        await patiently('rest', async () =>
          (await bench.read(id))['status'] === 'working' ? undefined : true,
        )
      }
      const texts = () =>
        new Set(stream.frames.map(({ data: frame }) => (frame['payload'] as Fields)['text']))
      await patiently('turn of every message', () =>
        accepted.every((text) => texts().has(`say ${text}`)) ? true : undefined,
      )
      expect(await fileNames(bench, quiet)).toEqual(expect.arrayContaining(written))
      const seqs = stream.frames.flatMap(({ data: { seq } }) => (typeof seq === 'number' ? [seq] : []))
      expect(seqs).toEqual(seqs.map((_, index) => index + 1))
      expect([accepted.length > 0, written.length > 0]).toEqual([true, true])
    },
  )
})

/** A stream from the beginning that has replayed `heard` unchanged. */
async function replayed(bench: Bench, heard: ReadonlyMap<string, Fields>): Promise<Listener> {
  const stream = await listen(bench, '/v1/events?last_event_id=0')
  await patiently('replay', () => (stream.frames.length >= heard.size ? true : undefined))
  const replayed = new Map(stream.frames.map(({ id, data }) => [id, data]))
  for (const [seq, frame] of heard) expect(replayed.get(seq)).toEqual(frame)
  return stream
}

/** Does something again and again, each time with a name of its own, until the service is gone. */
async function untilGone(name: string, act: (name: string) => Promise<void>): Promise<void> {
  for (let count = 0; ; count++) {
    try {
      await act(`${name}.${count}`)
    } catch {
      return
    }
  }
}

/** Waits as long as a machine may take that does much else; starting includes compiling the source. */
const patiently = <T>(what: string, find: () => T | undefined | Promise<T | undefined>): Promise<T> =>
  waitFor(what, find, 30_000)

function addressIn(printed: string): string | undefined {
  return /address\s+(\S+)/.exec(printed)?.[1]
}

/** The emulator as a process of its own, ready, with a way to kill it. */
async function asProcess(profile: 'a' | 'b', data: string): Promise<{ bench: Bench; kill(): Promise<void> }> {
  const running = start(['emulate', '--listen', '127.0.0.1:0', '--open-details', profile, '--data', data])
  const kill = async (): Promise<void> => {
    running.process.kill('SIGKILL')
    await running.ended
  }
  onTestFinished(kill)
  const baseUrl = await patiently('address of the emulator', () => {
    if (running.process.exitCode !== null) throw new Error(running.err)
    return addressIn(running.out)
  })
  const { details } = await open(profile)
  // Only its address and token are used.
  const emulator = { baseUrl, token: 'svc_pat_dev' } as Bench['emulator']
  return { bench: new Bench(emulator, details), kill }
}

describe('a data file that cannot be used', () => {
  /** A file that an emulator wrote, with a session in it. */
  async function used(): Promise<string> {
    const data = dataFile()
    const bench = await open('a', { data })
    await bench.session({ title: 'kept' })
    await bench.emulator.close()
    return data
  }

  const refused = (data: string, options: EmulatorOptions = {}): Promise<string> =>
    startEmulator({ data, ...options }).then(
      async (emulator) => {
        await emulator.close()
        throw new Error('it started')
      },
      (error: Error) => `${error.name}: ${error.message}`,
    )

  it.each([
    [
      'text',
      'not a data file of an emulator',
      (file: string) => writeFileSync(file, 'name: a scenario\n'.repeat(99)),
    ],
    [
      'a database of some other program',
      'another program',
      (file: string) => new Database(file).exec('CREATE TABLE t (x)').close(),
    ],
  ])('%s is refused and not changed', async (_what, why, make) => {
    const data = dataFile()
    make(data)
    const before = readFileSync(data)
    expect(await refused(data)).toMatch(new RegExp(`^DataFileError: ${data} .*${why}.*[Nn]ame another file`))
    expect(readFileSync(data)).toEqual(before)
  })

  it('a damaged file is refused and not changed', async () => {
    const data = await used()
    const bytes = readFileSync(data)
    bytes.fill(0xff, 4096, bytes.length)
    writeFileSync(data, bytes)
    expect(await refused(data)).toMatch(/is damaged: .*restore a copy of it/)
    expect(readFileSync(data)).toEqual(bytes)
  })

  it.each([
    ["UPDATE record SET json = '{' WHERE kind = 'session'", 'the session 0 is not JSON'],
    [
      `UPDATE record SET json = json_set(json, '$.status', 'asleep') WHERE kind = 'session'`,
      'the session 0: status must be one of',
    ],
    [
      "UPDATE record SET json = '{}' WHERE kind = 'token'",
      'the token 0: the body must have required property',
    ],
    ['PRAGMA user_version = 7', 'was written by another version (7, this one reads 2)'],
  ])('%s: it is refused with the cause', async (change, cause) => {
    const data = await used()
    new Database(data).exec(change).close()
    expect(await refused(data)).toContain(cause)
    // It was let go of, so that a copy can be put back.
    copyFileSync(data, `${data}.copy`)
    expect(await refused(data)).toContain(cause)
  })

  it('one of the other profile, or in use, is refused', async () => {
    const data = await used()
    expect(await refused(data, { openDetails: 'b' })).toContain('Start it with a, or name another file.')
    await open('a', { data })
    expect(await refused(data)).toContain('is in use by another emulator')
  })

  it('one that can no longer be written ends the emulator with the reason; it has everything that was sent', async () => {
    const data = dataFile()
    const main = join(import.meta.dirname, '../../src/main.js')
    // Files of this process may have 200 blocks, which is as good as a full disk.
    const command = `ulimit -f 200; exec "$0" "$1" emulate --listen 127.0.0.1:0 --data "$2"`
    const child = spawn('sh', ['-c', command, process.execPath, main, data], {
      env: { PATH: process.env['PATH'] },
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    let [out, err] = ['', '']
    child.stdout.on('data', (text: Buffer) => (out += text.toString()))
    child.stderr.on('data', (text: Buffer) => (err += text.toString()))
    const ended = new Promise((resolve) => child.once('close', resolve))
    const baseUrl = await patiently('address of the emulator', () => addressIn(out))
    const { details } = await open('a')
    const bench = new Bench({ baseUrl, token: 'svc_pat_dev' } as Bench['emulator'], details)
    const id = await bench.session({ title: 'sent' })
    await bench.send(id, 'burst 5000 200').catch(() => undefined)
    expect([await ended, err.split('\n').length]).toEqual([1, 2])
    expect(err).toMatch(/cannot be written: .*Is the disk full\?/)
    const after = await open('a', { data })
    expect(await after.read(id)).toMatchObject({ title: 'sent' })
    await after.reach(id, 'failed')
  })

  it('is released when the emulator cannot start for another reason', async () => {
    const data = await used()
    const { emulator } = await open('a')
    const { hostname: host, port } = new URL(emulator.baseUrl)
    await expect(startEmulator({ data, listen: { host, port: Number(port) } })).rejects.toThrow('EADDRINUSE')
    await expect(startEmulator({ data, scenario: '/nowhere.yaml' })).rejects.toThrow('/nowhere.yaml')
    const bench = await open('a', { data })
    expect(rowsOf((await bench.call('GET', '/v1/sessions')).body)).toMatchObject([{ title: 'kept' }])
  })

  it('the command says why in one line, exit code 2; only its owner may read the file', async () => {
    const data = await used()
    expect(statSync(data).mode & 0o777).toBe(0o600)
    const { code, err } = await cli([
      'emulate',
      '--listen',
      '127.0.0.1:0',
      '--open-details',
      'b',
      '--data',
      data,
    ])
    expect([code, err.split('\n').length]).toEqual([2, 2])
    expect(err).toContain('Start it with a')
  })
})
