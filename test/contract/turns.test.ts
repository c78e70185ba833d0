import { describe, expect, it } from 'vitest'
import { codeOf, open, PROFILES, rowsOf, until, type Bench, type Fields } from '../emulator/support.ts'
import { doing, talk } from './transcript.ts'

/** The session's first turn, once there is one. */
const firstTurn = (bench: Bench, id: string): Promise<Fields> => until(async () => (await bench.turns(id))[0])

describe.each(PROFILES)('turns, profile %s', (profile) => {
  it('TRN-01 TRN-02 TRN-03 TRN-05 TRN-07 TRN-08 TRN-09 TRN-10 TRN-16 TRN-27 a turn that ended shows every field, alone as in the list', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const before = bench.emulator.now()
    await bench.send(id, 'wait 60s\nsay hello')
    await firstTurn(bench, id)
    await bench.emulator.advance(60_000)
    const turn = await bench.settle(id)
    const absent = profile === 'a' ? { subagent_id: null, error: null } : {}
    expect(turn).toEqual({
      object: 'turn',
      id: expect.stringMatching(/^turn_./),
      session_id: id,
      status: 'completed',
      created_at: expect.any(Number),
      started_at: expect.any(Number),
      completed_at: expect.any(Number),
      artifacts: 'ready',
      artifacts_skipped: [],
      ...absent,
    })
    const times = ['created_at', 'started_at', 'completed_at'].map((key) => Number(turn[key]))
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    expect(times[0]).toBeGreaterThanOrEqual(before)
    expect(Number(times[2]) - Number(times[1])).toBeGreaterThanOrEqual(60_000)
    expect((await bench.call('GET', bench.path('turn', id, String(turn['id'])))).body).toEqual(turn)
    const elsewhere = profile === 'a' ? '/v1/turns/' : `/v1/sessions/${id}/turns/`
    expect((await bench.call('GET', elsewhere + String(turn['id']))).status).toBe(404)
    expect(codeOf(await bench.call('GET', bench.path('turn', id, 'turn_none')))).toBe('not_found')
  })

  it('TRN-04 TRN-11 a running turn is working and has no artifacts yet', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'write outputs/a.txt hi\nhang')
    const turn = await firstTurn(bench, id)
    expect(turn).toMatchObject({ status: 'working', artifacts: null, artifacts_skipped: [] })
    expect([turn['completed_at'], 'completed_at' in turn]).toEqual(
      profile === 'a' ? [null, true] : [undefined, false],
    )
  })

  it('TRN-06 TRN-20 TRN-21 a failed turn has an error, in the words of the profile', async () => {
    const steps = [{ fail: { message: 'out of disk', code: 'disk_full' } }]
    const bench = await open(profile, { scenario: doing(steps) })
    const id = await bench.session()
    expect(await talk(bench, id)).toMatchObject({
      status: 'failed',
      error:
        profile === 'a'
          ? { code: 'disk_full', message: 'out of disk' }
          : { reason: 'disk_full', detail: 'out of disk' },
    })
  })

  it('TRN-12 TRN-22 TRN-24 completed says that the agent stopped; pending, that its files cannot be fetched yet', async () => {
    const bench = await open(profile, { limits: { collectMs: 60_000 } })
    const id = await bench.session()
    expect(await talk(bench, id, 'write outputs/a.txt hi')).toMatchObject({
      status: 'completed',
      artifacts: 'pending',
    })
    const published = async () => rowsOf((await bench.call('GET', bench.path('artifacts', id))).body)
    expect(await published()).toEqual([])
    await bench.emulator.advance(30_000)
    expect((await bench.turns(id))[0]).toMatchObject({ artifacts: 'pending' })
    await bench.emulator.advance(30_000)
    expect((await bench.turns(id))[0]).toMatchObject({ artifacts: 'ready' })
    expect(await published()).toHaveLength(1)
  })

  it('TRN-13 TRN-23 ready with nothing to list is final', async () => {
    const bench = await open(profile)
    const id = await bench.session({ input: bench.message('say hello') })
    const settled = await bench.settle(id)
    expect(settled['artifacts']).toBe('ready')
    await bench.emulator.advance(3_600_000)
    expect((await bench.turns(id))[0]).toEqual(settled)
    expect(rowsOf((await bench.call('GET', bench.path('artifacts', id))).body)).toEqual([])
  })

  it('TRN-14 TRN-17 TRN-18 TRN-25 partial names every file that was left behind, and why', async () => {
    const bench = await open(profile, { limits: { artifactBytes: 1000 } })
    const id = await bench.session()
    await talk(bench, id, 'write outputs/small.txt hi\nwrite outputs/large.bin 2KiB')
    expect(await bench.settle(id)).toMatchObject({
      status: 'completed',
      artifacts: 'partial',
      artifacts_skipped: [{ path: 'outputs/large.bin', reason: expect.stringContaining('1000 bytes') }],
    })
  })

  it('TRN-15 failed is the collection that failed, not the turn', async () => {
    const bench = await open(profile)
    bench.emulator.faults.set({ fail_artifacts: 1 })
    const id = await bench.session({ input: bench.message('write outputs/a.txt hi') })
    expect(await bench.settle(id)).toMatchObject({ status: 'completed', artifacts: 'failed' })
  })

  it('TRN-19 names the subagent that took it on', async () => {
    const scenario = { name: 'x', replies: [{ when: 'dig', steps: ['say found'], subagent: 'researcher' }] }
    const bench = await open(profile, { scenario })
    const id = await bench.session()
    expect((await talk(bench, id, 'dig deeper'))['subagent_id']).toBe('researcher')
    expect((await talk(bench, id, 'say hello'))['subagent_id']).toBe(profile === 'a' ? null : undefined)
  })

  it('TRN-26 LIM-66 LIM-67 LIM-68 lists turns with limit, order and after', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const made: unknown[] = []
    for (const text of ['say 1', 'say 2', 'say 3']) made.push((await talk(bench, id, text))['id'])
    const list = async (query: string) => (await bench.call('GET', `/v1/sessions/${id}/turns${query}`)).body
    const idsIn = (body: Fields) => rowsOf(body).map((row) => row['id'])
    expect(idsIn(await list(''))).toEqual(made.toReversed())
    const first = await list('?order=asc&limit=2')
    expect([first['object'], idsIn(first), first['has_more'], first['last_id']]).toEqual([
      'list',
      made.slice(0, 2),
      true,
      made[1],
    ])
    const rest = await list(`?order=asc&after=${String(made[1])}`)
    expect([idsIn(rest), rest['has_more']]).toEqual([made.slice(2), false])
    expect(idsIn(await list('?after=turn_none'))).toEqual([])
    expect((await bench.call('GET', '/v1/sessions/none/turns')).status).toBe(404)
  })

  it('STA-22 TRN-28 a running turn is stopped by the cancel route of the profile, with its fourth status', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'call slow {}')
    const [action] = await bench.actions(id)
    const turnId = String(action?.['turn_id'])
    const elsewhere =
      profile === 'a' ? `/v1/turns/${turnId}/interrupt` : `/v1/sessions/${id}/turns/${turnId}/cancel`
    expect((await bench.call('POST', elsewhere)).status).toBe(404)
    expect((await bench.call('POST', bench.path('cancel', id, turnId))).status).toBe(202)
    const session = await bench.reach(id, 'idle')
    expect(session['required_actions']).toEqual([])
    expect((await bench.turns(id))[0]).toMatchObject({
      status: profile === 'a' ? 'cancelled' : 'interrupted',
      completed_at: expect.any(Number),
    })
    const again = await bench.call('POST', bench.path('cancel', id, turnId))
    expect([again.status, codeOf(again)]).toEqual([409, 'conflict'])
  })
})
