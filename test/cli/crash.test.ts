import { describe, expect, test } from 'vitest'
import { folderWith } from '../config/folder.ts'
import { start } from './process.ts'
import { FULL } from '../support/full.ts'

describe('dev --crash', () => {
  test.runIf(FULL)('kills the sidecar three times, and nothing is lost or done twice', async () => {
    const cwd = await folderWith({})
    const { code, out } = await start(['dev', '--crash'], { cwd }).ended
    expect(out.match(/process (\d+) is killed: SIGKILL/g)).toHaveLength(3)
    expect(new Set(out.match(/starts as process \d+/g)).size).toBe(4)

    const [, call = ''] = /idempotency-key (call_\S+)/.exec(out) ?? []
    const [, runs = '', answer = '', callback = ''] = out.split(/\n {2}A crash while .*\n/)
    expect(runs).toContain(`attempt 1, uncertain false, idempotency-key ${call}`)
    expect(runs).toContain(`store     ${call} is running: 1 run, no result`)
    expect(answer).toContain(`attempt 2, uncertain true, idempotency-key ${call}`)
    expect(answer).toContain('makes no second refund (1 refund)')
    expect(answer).toContain(`service   has accepted 1 answer of ${call}`)
    expect(answer).toMatch(new RegExp(`store +${call} is finished: 2 runs, result \\{"refund":"re_1"\\}\\n`))
    const [, id = ''] = /receives turn\.settled (evt_\S+), and has not responded yet/.exec(callback) ?? []
    expect(callback).toContain(`service   has accepted 1 answer of ${call}`)
    expect(callback).toContain(
      `the delivery of ${id} is pending; an attempt: the sidecar stopped before an answer`,
    )
    expect(callback).toContain(`receives turn.settled ${id} again, and accepts it (2 requests with this id)`)

    expect(out).toMatch(/✓ 2 runs of the tool under 1 key, every repeat with uncertain true: 1 refund\n/)
    expect(out).toMatch(/✓ 1 answer at the service, the call is answered in the store\n/)
    expect(out).toMatch(/✓ (\d+) of \1 facts delivered; \d+ callbacks? came again, with the same id: /)
    expect(out).toMatch(/✓ (\d+) of \1 expected facts delivered \(session statuses are not compared\)\n/)
    expect(Number(/in (\d+\.\d) s; read from/.exec(out)?.[1])).toBeLessThan(30)
    expect(code).toBe(0)
  })

  test('ends with the reason when an error occurs that nothing caught', async () => {
    const cwd = await folderWith({})
    const fail = `if (process.argv.includes('--crash')) setTimeout(() => { throw new Error('a fault') }, 500)`
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(fail)}` }
    const { code, err } = await start(['dev', '--crash'], { cwd, env }).ended
    expect(err).toContain('error: unexpected error, please report it: Error: a fault')
    expect(code).toBe(1)
  })

  test('is a demonstration of its own', async () => {
    const { code, err } = await start(['dev', '--crash', '--forward-to', '3000']).ended
    expect(code).toBe(2)
    expect(err).toContain("option '--crash' cannot be used with option '--forward-to <url>'")
  })
})
