import { writing, type Check } from '../check.ts'
import { at, boolean, is, kind, milliseconds, number, oneOf, rowsOf, string, textAt } from '../kind.ts'
import { codeOf, type Reply } from '../reply.ts'
import { speech } from '../speech.ts'
import { Stuck } from '../stuck.ts'
import { turnOf } from '../talk.ts'
import type { Trial } from '../trial.ts'

const base64 = (text: string | Buffer): string => Buffer.from(text).toString('base64')

/**
 * Writes files, and retries while the workspace is not ready. @throws {Stuck} when it never becomes
 * ready.
 */
async function write(trial: Trial, path: string, files: readonly object[]): Promise<Reply> {
  const limit = performance.now() + trial.ground.patience
  for (;;) {
    const reply = await trial.post(path, { files })
    if (codeOf(reply) !== 'conflict') return reply
    trial.status('ERR-25 FIL-41', reply, 409)
    if (performance.now() > limit) throw new Stuck('the workspace did not start in time')
    await trial.deployment.pause(200)
  }
}

const listing = writing(
  'files are written, listed and read',
  'ERR-25 FIL-01..11 FIL-13..20 FIL-22..32 FIL-35..38 FIL-41 GEN-21 GEN-27 AUT-32',
  async (trial) => {
    const id = await trial.session()
    const path = `/v1/sessions/${id}/files`
    const empty = await trial.get(path)
    trial.status('FIL-31', empty, 200)
    trial.is('FIL-08', empty, 'state', is('missing'))
    trial.is('FIL-09 FIL-10', empty, 'captured_at', is(null))
    const bytes = Buffer.from([0xff, 0xfe, 0x00, 0x80])
    const files = [
      { type: 'inline', path: 'conform/a.txt', data: base64('one') },
      { type: 'inline', path: 'conform/b.bin', data: base64(bytes) },
    ]
    const written = await write(trial, path, files)
    if (!trial.status('FIL-22..26', written, 200)) return
    const rows = rowsOf(written.json)
    trial.value('FIL-27', written, 'the entries', rows.length, is(2))
    for (const [index, row] of rows.entries()) {
      trial.shape(written, row, [
        ['object', 'FIL-28', is('workspace_file')],
        ['path', 'FIL-28 FIL-25', is(files[index]?.path)],
        ['size_bytes', 'FIL-28 FIL-26 FIL-38', is(index === 0 ? 3 : 4)],
      ])
    }
    await write(trial, path, [{ type: 'inline', path: 'conform/a.txt', data: base64('twice') }])
    const before = await trial.get(path)
    const seen = rowsOf(before.json).some((row) => textAt(row, 'path') === 'conform/a.txt')
    trial.expect(
      'FIL-13',
      before,
      'nothing before a snapshot',
      !seen || at(before.json, 'captured_at') !== null,
    )
    const refreshed = await trial.post(`${path}/refresh`)
    trial.status('FIL-29', refreshed, 200)
    trial.is('FIL-30', refreshed, 'state', is('ready'))
    const list = await trial.get(path)
    isListing(trial, list)
    const [a, b] = [await content(trial, path, 'conform/a.txt'), await content(trial, path, 'conform/b.bin')]
    trial.is('FIL-17', a, 'encoding', is('utf8'))
    trial.is('FIL-16 FIL-37', a, 'content', is('twice'))
    trial.is('FIL-18', b, 'encoding', is('base64'))
    trial.is('FIL-16', b, 'content', is(base64(bytes)))
    const { snapshot } = trial.places
    if (snapshot === null) trial.leave('FIL-32', 'the description does not name the parameter')
    else {
      await write(trial, path, [{ type: 'inline', path: 'conform/later.txt', data: base64('x') }])
      const fresh = await trial.get(path, { [snapshot]: '1' })
      const there = rowsOf(fresh.json).some((row) => textAt(row, 'path') === 'conform/later.txt')
      trial.expect('FIL-32', fresh, 'a file written just now', there, rowsOf(fresh.json).length)
    }
    await trial.remove(id)
  },
)

function isListing(trial: Trial, list: Reply): void {
  trial.is('FIL-01', list, 'object', is('list'))
  trial.is('FIL-07', list, 'state', is('ready'))
  trial.is('FIL-09', list, 'captured_at', milliseconds)
  trial.is('FIL-11', list, 'truncated', boolean)
  const rows = rowsOf(list.json)
  trial.expect(
    'FIL-31',
    list,
    'the files written',
    rows.some((row) => textAt(row, 'path') === 'conform/a.txt'),
  )
  for (const row of rows) {
    trial.shape(list, row, [
      ['object', 'FIL-02 GEN-21', is('workspace_file')],
      [
        'path',
        'FIL-03',
        kind('relative to the workspace', (path) => typeof path === 'string' && !path.startsWith('/')),
      ],
      ['type', 'FIL-04', is('file')],
      ['size_bytes', 'FIL-05', number],
      ['readable', 'FIL-06', boolean],
    ])
  }
}

async function content(trial: Trial, path: string, file: string): Promise<Reply> {
  const reply = await trial.get(`${path}/content`, { path: file })
  trial.status('FIL-35 FIL-36 AUT-32', reply, 200)
  trial.shape(reply, reply.json, [
    ['object', 'FIL-14 GEN-21', is('workspace_file.content')],
    ['path', 'FIL-15', is(file)],
    ['content', 'FIL-16', string],
    ['encoding', 'FIL-17 FIL-18', oneOf('utf8', 'base64')],
    ['captured_at', 'FIL-19', milliseconds],
    ['truncated', 'FIL-20', is(false)],
  ])
  return reply
}

const refusals = writing(
  'invalid files are refused',
  'ERR-04 ERR-06 ERR-21 FIL-23..26 FIL-36',
  async (trial) => {
    const id = await trial.session()
    const path = `/v1/sessions/${id}/files`
    const good = { type: 'inline', path: 'a', data: 'aGk=' }
    const bad = [
      ['FIL-23', { files: good }],
      ['FIL-24', { files: [{ ...good, type: 'conform' }] }],
      ['FIL-25', { files: [{ ...good, path: 7 }] }],
      ['FIL-26', { files: [{ ...good, data: 'not base64!' }] }],
      ['ERR-04', { files: [{ ...good, mode: 7 }] }],
    ] as const
    for (const [ids, body] of bad) {
      const reply = await trial.post(path, body)
      trial.refused(`${ids} ERR-06`, reply, 400, 'invalid_request')
    }
    trial.refused('FIL-36', await trial.get(`${path}/content`), 400, 'invalid_request')
    trial.refused('ERR-21', await trial.get(`${path}/content`, { path: 'conform-nothing' }), 404, 'not_found')
    await trial.remove(id)
  },
)

const truncation = writing(
  'only long text is cut at the inline limit',
  'FIL-21 LIM-59 ERR-25 FIL-41',
  async (trial) => {
    const id = await trial.session()
    const path = `/v1/sessions/${id}/files`
    const size = 700_000
    const text = await write(trial, path, [
      { type: 'inline', path: 'long.txt', data: base64('x'.repeat(size)) },
    ])
    if (text.status !== 200) throw new Stuck('a file of 700,000 bytes is over a limit here')
    await write(trial, path, [{ type: 'inline', path: 'long.bin', data: base64(Buffer.alloc(size, 0xff)) }])
    await trial.post(`${path}/refresh`)
    const [long, binary] = [
      await trial.get(`${path}/content`, { path: 'long.txt' }),
      await trial.get(`${path}/content`, { path: 'long.bin' }),
    ]
    const shown = textAt(long.json, 'content').length
    trial.is('FIL-21', long, 'truncated', is(shown < size))
    trial.is('FIL-21', binary, 'truncated', is(false))
    trial.note('LIM-59', shown < size ? `${shown} characters` : `more than ${size} characters`)
    await trial.remove(id)
  },
)

const seeds = writing(
  'seeded files exist when the workspace runs',
  'ERR-25 FIL-41 SES-78 SES-105 SES-106 SES-108 SES-109 GEN-01 TOO-35',
  async (trial) => {
    const seeded = (path: string, text: string) => ({ type: 'inline', path, data: base64(text) })
    const files = [seeded('seed.txt', 'seeded'), seeded('seed.txt/below.txt', 'never')]
    const [id, other] = [await trial.session({ environment: { files } }), await trial.session()]
    for (const one of [id, other]) await turnOf(trial, one, speech.say('up'))
    const path = (session: string) => `/v1/sessions/${session}/files`
    for (const one of [id, other]) await trial.post(`${path(one)}/refresh`)
    const reply = await trial.get(`${path(id)}/content`, { path: 'seed.txt' })
    trial.is('SES-78 SES-105 SES-106 TOO-35', reply, 'content', is('seeded'))
    const elsewhere = await trial.get(`${path(other)}/content`, { path: 'seed.txt' })
    trial.refused('GEN-01', elsewhere, 404, 'not_found')
    const items = await trial.get(`/v1/sessions/${id}/items`, { limit: '100' })
    const error = rowsOf(items.json).find((item) => JSON.stringify(item).includes('below.txt'))
    trial.expect('SES-108', reply, 'a session that is open', reply.status === 200)
    trial.expect('SES-109', items, 'an error item that names the file', error !== undefined)
    for (const one of [id, other]) await trial.remove(one)
  },
)

export const files: readonly Check[] = [listing, refusals, truncation, seeds]
