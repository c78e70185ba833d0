import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../src/std/json.ts'
import { isFinal, isSettled, type Session, type Turn } from '../../src/core/resource.ts'
import type { KnownSession, KnownTurn } from '../../src/core/store.ts'
import { readSession, readTurn } from '../../src/core/wire.ts'
import { baselineOf, diff, diffGone, type DiffContext, type Snapshot } from '../../src/sidecar/intake/diff.ts'

const CONTEXT: DiffContext = {
  now: 5000,
  steady: 5000,
  seen: { poll: 4999 },
  since: null,
  tools: new Set(['lookup_order']),
  frameWait: { ms: 0, since: new Map() },
}

type Look = Omit<Snapshot, 'known' | 'placeholders'>

/** `since`: steady milliseconds, since when turns are known to be final. */
function compare(
  known: KnownSession | null,
  placeholders: readonly KnownTurn[],
  look: Look,
  context: DiffContext,
  since: ReadonlyMap<string, number>,
) {
  const frameWait = { ...context.frameWait, since }
  return diff({ ...look, known, placeholders }, { ...context, frameWait })
}

function session(status: string, fields: object = {}): Session {
  return readSession(
    {
      id: 's',
      status,
      created_at: 100,
      updated_at: 4000,
      title: 'T',
      metadata: { a: 'b' },
      required_actions: [],
      ...fields,
    },
    () => undefined,
  )
}

function turn(id: string, status: string, artifacts: string | null = null, fields: object = {}): Turn {
  const completed_at = status === 'working' ? null : 3000
  return readTurn(
    { id, status, session_id: 's', created_at: 2000, started_at: 2000, completed_at, artifacts, ...fields },
    's',
  )
}

function known(from: Session, turns: Turn[] = []): KnownSession {
  return {
    deleted: false,
    atRest: false,
    revision: 1,
    session: from,
    baseline: 0,
    turns: turns.map(knownTurn),
    actions: from.actions,
    items: { last: null, since: null },
  }
}

function knownTurn(one: Turn): KnownTurn {
  const final = isFinal(one)
  return {
    turn: one,
    read: true,
    final,
    settled: isSettled(one),
    endedFrameAt: null,
    finalFor: null,
    finalFact: final,
  }
}

function looked(status: string, turns: Turn[], fields: object = {}): Look {
  return {
    session: session(status, fields),
    turns,
    passed: [],
    endedSince: new Set<string>(),
    errorItem: null,
    artifacts: [],
  }
}

function typesOf(
  before: KnownSession | null,
  now: Session,
  turns: Turn[],
  context: Partial<DiffContext> = {},
) {
  const look = {
    session: now,
    turns,
    passed: [],
    endedSince: new Set<string>(),
    errorItem: null,
    artifacts: [],
  }
  const difference = compare(before, [], look, { ...CONTEXT, ...context }, new Map())
  return difference.reading.facts.map(({ type }) => type)
}

/** Turns whose artifacts are on the way. */
function collecting(turns: readonly KnownTurn[]): string[] {
  return turns.filter(({ final, settled }) => final && !settled).map(({ turn: { id } }) => id)
}

describe('a comparison', () => {
  const action = {
    type: 'function_call',
    call_id: 'c',
    turn_id: 't',
    name: 'lookup_order',
    arguments: {},
    created_at: 1,
    expires_at: null,
  }

  it('names what happened in causal order, also when all of it is new at once', () => {
    const before = known(session('requires_action', { required_actions: [action] }), [turn('t1', 'working')])
    const now = session('idle', { required_actions: [] })
    expect(
      typesOf(before, now, [
        turn('t1', 'completed', 'ready'),
        turn('t2', 'completed', 'ready', { created_at: 2500 }),
      ]),
    ).toEqual([
      'turn.started',
      'action.resolved',
      'turn.completed',
      'turn.completed',
      'turn.settled',
      'turn.settled',
      'session.idle',
    ])
  })

  it('makes only session.created of a new session that is idle', () => {
    expect(typesOf(null, session('idle'), [])).toEqual(['session.created'])
  })

  it('makes no fact when nothing changed', () => {
    const before = known(session('working'), [turn('t', 'working')])
    expect(typesOf(before, session('working'), [turn('t', 'working')])).toEqual([])
  })

  it('gives the same ids, whichever channel caused the read', () => {
    const look = {
      session: session('idle'),
      turns: [turn('t', 'completed', 'ready')],
      passed: [],
      endedSince: new Set<string>(),
      errorItem: null,
      artifacts: null,
    }
    const ids = [{ poll: 1 }, { stream: 2 }, { webhook: 3 }].map((seen) =>
      compare(null, [], look, { ...CONTEXT, seen }, new Map()).reading.facts.map(({ id }) => id),
    )
    expect(ids[1]).toEqual(ids[0])
    expect(ids[2]).toEqual(ids[0])
  })

  it.each([
    ['completed', 'turn.completed'],
    ['failed', 'turn.failed'],
    ['cancelled', 'turn.ended'],
    ['stopped_by_person', 'turn.ended'],
  ])('calls a turn that is %s %s', (status, type) => {
    expect(
      typesOf(known(session('working'), [turn('t', 'working')]), session('working'), [turn('t', status)]),
    ).toContain(type)
  })

  // [fault state-2]
  it('never settles a turn whose artifacts are pending', () => {
    const before = known(session('working'), [turn('t', 'working')])
    expect(typesOf(before, session('idle'), [turn('t', 'completed', 'pending')])).toEqual([
      'turn.completed',
      'session.idle',
    ])
  })

  it('treats a turn with an unknown status and no completed_at as running', () => {
    const before = known(session('working'), [turn('t', 'working')])
    expect(typesOf(before, session('working'), [turn('t', 'parked', null, { completed_at: null })])).toEqual(
      [],
    )
  })

  it('treats a turn with an unknown status and final artifacts as ended', () => {
    const before = known(session('working'), [turn('t', 'working')])
    const cancelled = turn('t', 'cancelled', 'ready', { completed_at: null })
    expect(typesOf(before, session('idle'), [cancelled])).toEqual([
      'turn.ended',
      'turn.settled',
      'session.idle',
    ])
  })

  it('orders the facts of consecutive turns one turn after the other, and those of parallel turns by kind', () => {
    const before = known(session('working', { required_actions: [{ ...action, turn_id: 't1' }] }), [
      turn('t1', 'working'),
    ])
    const now = session('working')
    const next = (fields: object) => [
      turn('t1', 'completed', 'ready'),
      turn('t2', 'completed', 'ready', { created_at: 2500, completed_at: 3500, ...fields }),
      turn('t3', 'working', null, { created_at: 3500, started_at: 3600 }),
    ]
    const one = ['turn.completed', 'turn.settled']
    // Messages that wait: the turn of each begins when the one before is over, though it may have been made before.
    expect(typesOf(before, now, next({ started_at: 3000 }))).toEqual([
      'action.resolved',
      ...one,
      'turn.started',
      ...one,
      'turn.started',
    ])
    expect(typesOf(before, now, next({ started_at: 2500 }))).toEqual([
      'turn.started',
      'action.resolved',
      ...one,
      ...one,
      'turn.started',
    ])
  })

  it('reports the failure of a session again if its error is new, and not if only something else is', () => {
    const before = known(session('failed'), [turn('t', 'failed', 'ready')])
    const again = (updated_at: number, created_at: number) => {
      const look = {
        session: session('failed', { updated_at }),
        turns: [],
        passed: [],
        endedSince: new Set<string>(),
        errorItem: { id: 'i', created_at },
        artifacts: [],
      }
      return compare(before, [], look, CONTEXT, new Map()).reading.facts
    }
    const [first, second] = [again(5000, 4990), again(6000, 5990)].map(([fact]) => fact)
    expect(
      [first, second].map((fact) => [fact?.type, JSON.parse(fact?.body ?? '{}').item?.created_at]),
    ).toEqual([
      ['session.failed', 4990],
      ['session.failed', 5990],
    ])
    expect(first?.id).not.toBe(second?.id)
    expect([again(5000, 4000), again(4000, 4990)]).toEqual([[], []])
  })

  it('reports another failure only of a session that failed before and now, and has a new error', () => {
    const again = (was: string, status: string, errorItem: JsonObject | null) => {
      const look = { ...looked(status, [], { updated_at: 5000 }), errorItem }
      return compare(known(session(was)), [], look, CONTEXT, new Map()).reading.facts.map(({ type }) => type)
    }
    expect(again('idle', 'idle', { id: 'i', created_at: 4990 })).toEqual([])
    expect(again('failed', 'idle', { id: 'i', created_at: 4990 })).toEqual(['session.idle'])
    expect(again('failed', 'failed', null)).toEqual([])
    expect(again('failed', 'failed', { id: 'i' })).toEqual([])
  })

  it('reports an action that began and ended during the read, and none that is known, open or too late', () => {
    const asked = (call_id: string, turn_id: string | null) => ({ ...action, call_id, turn_id })
    const was = [asked('known', 't')]
    const before = known(session('requires_action', { required_actions: was }), [
      turn('t', 'working'),
      turn('known', 'failed', 'pending'),
    ])
    const now = session('requires_action', { required_actions: [asked('open', 't')] })
    const { actions: passed } = session('idle', {
      required_actions: [
        asked('known', 't'),
        asked('open', 't'),
        asked('late', 'known'),
        asked('seen', 't'),
        asked('stray', null),
      ],
    })
    const look = {
      ...looked('idle', [turn('t', 'working')]),
      session: now,
      passed,
    }
    const { reading } = compare(before, [], look, CONTEXT, new Map())
    expect(reading.facts.map(({ subject }) => subject)).toEqual([
      'action.required/open',
      'action.resolved/known',
      'action.required/seen',
      'action.resolved/seen',
      'action.required/stray',
      'action.resolved/stray',
    ])
    expect(reading.opened.map(({ callId }) => callId)).toEqual(['seen', 'stray', 'open'])
    expect(reading.resolved).toEqual(['known', 'seen', 'stray'])
  })

  it('reports events since the list for a session that is only known from the list', () => {
    const hour = 3_600_000
    const baseline = 10 * hour
    const listed = { ...known(session('working')), baseline }
    const ended = (id: string, completed_at: number) =>
      turn(id, 'completed', 'ready', { created_at: 2000, completed_at })
    const turns = [ended('after', baseline - hour + 1), ended('before', baseline - hour)]
    const subjects = (before: KnownSession) => {
      const { reading } = compare(before, [], looked('working', turns), CONTEXT, new Map())
      return reading.facts.map(({ subject }) => subject)
    }
    expect(subjects(listed)).toEqual(['turn.started/after', 'turn.final/after', 'turn.settled/after'])
    expect(subjects({ ...listed, atRest: true })).toEqual([])
    const [read] = known(session('working'), [turn('other', 'working')]).turns
    if (read === undefined) throw new Error('no turn')
    expect(subjects({ ...listed, turns: [read] })).toEqual([])
    expect(subjects({ ...listed, turns: [{ ...read, read: false }] })).toEqual(subjects(listed))
    expect(subjects({ ...listed, turns: [read, { ...read, read: false }] })).toEqual([])
  })

  it('waits for the frame of a turn that ended while the stream is up, and not without it', () => {
    const before = known(session('working'), [turn('t', 'working')])
    const look = {
      session: session('idle'),
      turns: [turn('t', 'completed', 'ready')],
      passed: [],
      endedSince: new Set<string>(),
      errorItem: null,
      artifacts: [],
    }
    const connected = { ...CONTEXT, frameWait: { ms: 2000, since: new Map() } }
    expect(compare(before, [], look, connected, new Map()).waitUntil).toBe(7000)
    expect(compare(before, [], look, connected, new Map([['t', 3001]])).waitUntil).toBe(5001)
    expect(compare(before, [], look, connected, new Map([['t', 3000]])).waitUntil).toBeNull()
    const seen = { ...before, turns: before.turns.map((entry) => ({ ...entry, endedFrameAt: 4000 })) }
    expect(compare(seen, [], look, connected, new Map()).waitUntil).toBeNull()
  })

  describe('at the first read', () => {
    const first = { since: 1000 }

    it('makes no facts about a session that is idle', () => {
      expect(
        typesOf(
          null,
          session('idle', { updated_at: 900 }),
          [turn('t', 'completed', 'ready', { created_at: 500, completed_at: 900 })],
          first,
        ),
      ).toEqual([])
    })

    it('reports a session that is not idle, without the turns that had ended', () => {
      const old = turn('old', 'completed', 'ready', { created_at: 300, completed_at: 700 })
      const running = turn('new', 'working', null, { created_at: 800 })
      expect(typesOf(null, session('working', { updated_at: 900 }), [old, running], first)).toEqual([
        'session.created',
        'session.working',
        'turn.started',
      ])
    })

    it('reports a turn that ended since the start, though it is over at its first read', () => {
      const old = turn('old', 'completed', 'ready', { created_at: 300, completed_at: 700 })
      const late = turn('late', 'completed', 'ready', { created_at: 800, completed_at: 30_000 })
      const now = session('idle', { updated_at: 30_000 })
      expect(typesOf(null, now, [late, old], first)).toEqual([
        'session.created',
        'turn.started',
        'turn.completed',
        'turn.settled',
      ])
    })

    it('treats a session that was created after the start as new', () => {
      expect(typesOf(null, session('idle', { created_at: 1500, updated_at: 1600 }), [], first)).toEqual([
        'session.created',
      ])
    })
  })

  it('waits for the last of the frames of several turns', () => {
    const ended = [turn('t', 'completed', 'ready'), turn('u', 'completed', 'ready')]
    const connected = { ...CONTEXT, frameWait: { ms: 2000, since: new Map() } }
    const since = new Map([
      ['t', 4000],
      ['u', 3500],
    ])
    const before = known(session('working'), [turn('t', 'working'), turn('u', 'working')])
    expect(compare(before, [], looked('idle', ended), connected, since).waitUntil).toBe(6000)
    expect(compare(before, [], looked('idle', ended.toReversed()), connected, since).waitUntil).toBe(6000)
  })

  it.each([
    [true, 'idle', [], []],
    [true, 'failed', [], [turn('t', 'completed', 'ready')]],
    [false, 'working', [], []],
    [false, 'resting', [], []],
    [false, 'idle', [action], []],
    [false, 'idle', [], [turn('t', 'completed', 'pending')]],
    [false, 'failed', [], [turn('t', 'working')]],
  ])(
    'idle is %s for a session that is %s, with the actions %j and the turns %j',
    (atRest, status, actions, turns) => {
      const look = looked(status, turns, { required_actions: actions })
      expect(compare(null, [], look, CONTEXT, new Map()).reading.atRest).toBe(atRest)
    },
  )

  it('adds the item with the reason to a failure', () => {
    const look = {
      ...looked('failed', []),
      passed: [],
      errorItem: { id: 'item_1' },
    }
    const bodies = [look, { ...look, passed: [], errorItem: null }].map(
      (one) => compare(known(session('working')), [], one, CONTEXT, new Map()).reading.facts[0]?.body,
    )
    expect(bodies.map((body) => JSON.parse(body ?? '').item)).toEqual([{ id: 'item_1' }, undefined])
  })

  it('orders turns by their age, in any order of reading', () => {
    const turns = [
      turn('a', 'working', null, { created_at: null }),
      turn('b', 'working', null, { created_at: 1000, started_at: 1500 }),
      turn('c', 'working', null, { created_at: 1000, started_at: 2500 }),
      turn('d', 'working', null, { created_at: 1000, started_at: null }),
      turn('e', 'working', null, { created_at: 2000, started_at: 2100 }),
    ]
    fc.assert(
      fc.property(fc.shuffledSubarray(turns, { minLength: 5 }), (read) => {
        const { facts } = compare(
          known(session('working')),
          [],
          looked('working', read),
          CONTEXT,
          new Map(),
        ).reading
        expect(facts.map(({ turnId }) => turnId)).toEqual(['a', 'b', 'c', 'd', 'e'])
      }),
    )
  })

  it('treats a turn that is on two pages of a list as one', () => {
    const twice = [turn('t', 'working'), turn('t', 'completed', 'ready')]
    const { facts } = compare(
      known(session('working')),
      [],
      looked('working', twice),
      CONTEXT,
      new Map(),
    ).reading
    expect(facts.map(({ type }) => type)).toEqual(['turn.started', 'turn.completed', 'turn.settled'])
  })

  it('stores every turn that it read, with the time when its end was first read, but no settled turn', () => {
    const settled = turn('old', 'completed', 'ready')
    const before = known(session('working'), [settled, turn('t', 'working'), turn('u', 'working')])
    const now = [
      settled,
      turn('t', 'completed', 'pending'),
      turn('u', 'working'),
      turn('v', 'completed', 'ready'),
    ]
    const { reading, turns } = compare(before, [], looked('working', now), CONTEXT, new Map([['t', 4000]]))
    const rest = { read: true, endedFrameAt: null }
    expect(new Map(reading.turns.map(({ turn: { id }, ...entry }) => [id, entry]))).toEqual(
      new Map([
        ['t', { ...rest, final: true, settled: false, finalFor: 1000, finalFact: true }],
        ['u', { ...rest, final: false, settled: false, finalFor: null, finalFact: false }],
        ['v', { ...rest, final: true, settled: true, finalFor: 0, finalFact: true }],
      ]),
    )
    expect(collecting(turns)).toEqual(['t'])
  })

  it('continues to wait for the artifacts of a turn that was not read again', () => {
    const before = known(session('working'), [
      turn('pending', 'completed', 'pending'),
      turn('ready', 'completed', 'ready'),
      turn('working', 'working'),
    ])
    const unread = { ...knownTurn(turn('unread', 'completed', 'pending')), read: false }
    const look = { ...looked('idle', []), turns: null }
    const again = { ...before, turns: [...before.turns, unread] }
    const { turns, reading } = compare(again, [], look, CONTEXT, new Map())
    expect(collecting(turns)).toEqual(['pending'])
    expect([reading.atRest, reading.turns]).toEqual([false, []])
  })

  it('no longer waits for a turn that names no artifacts an hour after its end', () => {
    const before = known(session('working'), [{ ...turn('t', 'failed'), artifacts: null }])
    const HOUR = 3_600_000
    const look = looked(
      'idle',
      before.turns.map((entry) => entry.turn),
    )
    const after = (finalFor: number) => {
      const turns = before.turns.map((entry) => ({ ...entry, finalFor }))
      return compare({ ...before, turns }, [], look, CONTEXT, new Map()).reading.atRest
    }
    expect([after(HOUR - 1), after(HOUR)]).toEqual([false, true])
  })

  // Found by the simulation: the end was reported once more, after it had been delivered and
  // pruned.
  it('keeps the end of a turn that a delayed read shows as running', () => {
    const before = known(session('working'), [turn('t', 'completed', 'pending')])
    const { turns, reading } = compare(
      before,
      [],
      looked('working', [turn('t', 'working')]),
      CONTEXT,
      new Map(),
    )
    expect([reading.facts, reading.turns, collecting(turns)]).toEqual([[], [], ['t']])
  })

  it('reports a turn that was known only by its frames as new', () => {
    const placeholder = { ...knownTurn(turn('t', 'working')), read: false, endedFrameAt: 4000 }
    const { reading } = compare(
      null,
      [placeholder],
      looked('idle', [turn('t', 'completed', 'ready')]),
      CONTEXT,
      new Map(),
    )
    expect(reading.facts.map(({ type }) => type)).toEqual([
      'session.created',
      'turn.started',
      'turn.completed',
      'turn.settled',
    ])
    expect(reading.turns[0]?.endedFrameAt).toBe(4000)
  })

  it.each([
    [1000, 400, 900, 900],
    [1000, 400, 1600, 1000],
    [1000, 1000, 1600, 1000],
    [1000, 1001, 1600, 0],
    [1000, null, 900, 900],
    [null, 400, 900, 0],
  ])(
    'at a first look (since %s) at a session created at %s and changed at %s, what it shows until %s counts as old',
    (since, created_at, updated_at, baseline) => {
      const one = session('idle', { created_at, updated_at })
      expect(baselineOf(one, since)).toBe(baseline)
    },
  )

  it('accepts a call of a tool of ours, and of no other', () => {
    const other = { ...action, call_id: 'd', name: 'not_configured' }
    const approval = { ...action, call_id: 'e', type: 'approval' }
    const now = session('requires_action', { required_actions: [action, other, approval] })
    const { reading } = compare(
      known(session('working')),
      [],
      {
        session: now,
        turns: null,
        passed: [],
        endedSince: new Set<string>(),
        errorItem: null,
        artifacts: null,
      },
      CONTEXT,
      new Map(),
    )
    expect(reading.newCalls).toEqual([
      expect.objectContaining({
        callId: 'c',
        sessionId: 's',
        turnId: 't',
        name: 'lookup_order',
        action,
        createdAt: 1,
        expiresAt: null,
        receivedAt: 5000,
      }),
    ])
    expect(reading.facts.map(({ type }) => type)).toEqual([
      'action.required',
      'action.required',
      'action.required',
      'session.requires_action',
    ])
  })

  it('resolves the actions of a deleted session, and reports its deletion', () => {
    const before = known(session('requires_action', { required_actions: [action] }))
    const { facts, ...rest } = diffGone(before.session.id, before, CONTEXT)
    expect(facts.map(({ type, subject }) => [type, subject])).toEqual([
      ['action.resolved', 'action.resolved/c'],
      ['session.deleted', 'session.deleted/s'],
    ])
    expect(rest).toEqual({
      sessionId: 's',
      revision: 1,
      session: null,
      baseline: 0,
      atRest: true,
      turns: [],
      opened: [],
      resolved: ['c'],
      newCalls: [],
      at: 5000,
    })
  })

  it('hands the resource on as given, unknown fields included', () => {
    const before = known(session('working'), [turn('t', 'working')])
    const look = {
      session: session('idle'),
      turns: [
        turn('t', 'completed', 'partial', {
          mood: 'good',
          artifacts_skipped: [{ path: 'a', reason: 'big' }],
        }),
      ],
      passed: [],
      endedSince: new Set<string>(),
      errorItem: null,
      artifacts: [{ id: 'art_1' }],
    }
    const { facts } = compare(before, [], look, CONTEXT, new Map()).reading
    const settled = JSON.parse(facts.find(({ type }) => type === 'turn.settled')?.body ?? '{}')
    expect(settled).toMatchObject({
      turn: { id: 't', mood: 'good' },
      artifacts: [{ id: 'art_1' }],
      artifacts_skipped: [{ path: 'a', reason: 'big' }],
      session: { title: 'T', metadata: { a: 'b' }, status: 'idle' },
    })
  })
})
