import { expect, test } from 'vitest'
import { adminApi, paged } from './admin-api.ts'
import { cli, start } from './process.ts'

/** The list of handlers; the pending deliveries of `app` are read each time. */
function backlog(pending: () => number, state = 'up') {
  return (): unknown => ({
    object: 'list',
    data: [
      { name: 'app', state, pending: pending() },
      { name: 'other', state: 'up', pending: 3 },
    ],
    has_more: false,
    last_id: 'other',
  })
}

test('--wait ends when the handler has no pending deliveries', async () => {
  const left = [12, 5, 0]
  const { url } = await adminApi({
    'POST /api/replay': () => ({ handler: 'app', count: 12 }),
    'GET /api/deliveries': paged([], () => ''),
    'GET /api/handlers': backlog(() => left.shift() ?? 0),
  })
  const args = ['replay', '--handler', 'app', '--from', '1h', '--wait', '--url', url]
  expect(await cli(args)).toEqual({
    code: 0,
    out: 'app gets 12 facts again\n12 delivered, 0 dead\n',
    err: '',
  })
  expect(left).toEqual([])
})

test('a replay does not count other facts that are dead-lettered meanwhile', async () => {
  let replayed = false
  const row = (pos: number) => ({ id: `dlv_${pos}_1`, attempts: [{ at: '2026-11-21T05:00:00Z', ms: 1 }] })
  const { url } = await adminApi({
    'POST /api/replay': () => {
      replayed = true
      return { handler: 'app', count: 12 }
    },
    'GET /api/deliveries': (asked, query) =>
      paged(
        query.get('status') === 'dead' ? (replayed ? [row(13), row(5)] : []) : [row(12), row(11)],
        ({ id }) => id,
      )(asked, query),
    'GET /api/handlers': backlog(() => 0),
  })
  expect(await cli(['replay', '--handler', 'app', '--from', '1', '--wait', '--url', url])).toEqual({
    code: 1,
    out: 'app gets 12 facts again\n11 delivered, 1 dead\n',
    err: 'dead-lettered meanwhile: 1 other delivery\n',
  })
})

test('--wait reads only the dead letters of the selection', async () => {
  const { url, asked } = await adminApi({
    'POST /api/deliveries/retry': () => ({ count: 1, dry_run: false }),
    'GET /api/deliveries': paged([], () => ''),
    'GET /api/handlers': backlog(() => 0),
  })
  const since = '2026-11-21T05:00:00.000Z'
  await cli(['deliveries', 'retry', '--dead', '--handler', 'app', '--since', since, '--wait', '--url', url])
  const read = asked.filter(({ method, url }) => method === 'GET' && url.includes('status=dead'))
  expect(read.map(({ url }) => new URLSearchParams(url.split('?')[1]).get('since'))).toEqual([since, since])
})

test('an interrupt of --wait ends only the waiting', async () => {
  const { url, asked } = await adminApi({
    'POST /api/deliveries/retry': () => ({ count: 5, dry_run: false }),
    'GET /api/deliveries': paged([], () => ''),
    'GET /api/handlers': backlog(() => 5),
  })
  const running = start(['deliveries', 'retry', '--dead', '--handler', 'app', '--wait', '--url', url])
  await expect.poll(() => asked.filter((one) => one.url.includes('handlers')).length).toBeGreaterThan(1)
  running.process.kill('SIGINT')
  expect(await running.ended).toEqual({
    code: 1,
    out: '5 dead deliveries will be sent again\n',
    err: 'stopped waiting; the sidecar continues with 5 deliveries\n',
  })
})

test('--wait over all handlers does not wait for a paused one when no other has pending deliveries', async () => {
  const { url } = await adminApi({
    'POST /api/deliveries/retry': () => ({ count: 3, dry_run: false }),
    'GET /api/deliveries': paged([], () => ''),
    'GET /api/handlers': () => ({
      object: 'list',
      data: [
        { name: 'app', state: 'up', pending: 0 },
        { name: 'audit', state: 'paused', pending: 3 },
      ],
      has_more: false,
      last_id: 'audit',
    }),
  })
  const { code, err } = await cli(['deliveries', 'retry', '--dead', '--wait', '--url', url])
  expect({ code, err }).toEqual({ code: 1, err: '3 deliveries left, and the handler is paused\n' })
})

test('--wait over all handlers leaves out what waits for a removed one', async () => {
  const { url } = await adminApi({
    'POST /api/deliveries/retry': () => ({ count: 3, dry_run: false }),
    'GET /api/deliveries': paged([], () => ''),
    'GET /api/handlers': () => ({
      object: 'list',
      data: [
        { name: 'audit', state: 'paused', pending: 3 },
        { name: 'former', state: 'removed', pending: 1 },
      ],
      has_more: false,
      last_id: 'former',
    }),
  })
  const { code, err } = await cli(['deliveries', 'retry', '--dead', '--wait', '--url', url])
  expect({ code, err }).toEqual({
    code: 1,
    err: '3 deliveries left, and the handler is paused\n',
  })
})

test('--wait does not wait for a handler that is paused', async () => {
  const { url } = await adminApi({
    'POST /api/replay': () => ({ handler: 'app', count: 1 }),
    'GET /api/deliveries': paged([], () => ''),
    'GET /api/handlers': backlog(() => 1, 'paused'),
  })
  const { code, err } = await cli(['replay', '--handler', 'app', '--from', '1', '--wait', '--url', url])
  expect({ code, err }).toEqual({ code: 1, err: '1 delivery left, and the handler is paused\n' })
})
