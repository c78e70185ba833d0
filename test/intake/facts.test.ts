import { describe, expect, it } from 'vitest'
import type { Fact } from '../../src/core/fact.ts'
import type { JsonObject } from '../../src/std/json.ts'
import { readSession, readTurn } from '../../src/core/wire.ts'
import { diff } from '../../src/sidecar/intake/diff.ts'

const CONTEXT = {
  now: 5000,
  steady: 5000,
  seen: { poll: 4999 },
  since: null,
  tools: new Set<string>(),
  frameWait: { ms: 0, since: new Map<string, number>() },
}

/** The facts of a new session that has one turn. */
function factsOf(
  turn: object,
  more: { actions?: JsonObject[]; artifacts?: JsonObject[] | null } = {},
): Fact[] {
  const { actions = [], artifacts = null } = more
  const fields = {
    id: 's',
    status: 'idle',
    title: 'T',
    created_at: 1,
    updated_at: 2,
    required_actions: actions,
  }
  const snapshot = {
    known: null,
    placeholders: [],
    session: readSession(fields, () => undefined),
    turns: [readTurn({ id: 't', status: 'completed', ...turn }, 's')],
    passed: [],
    endedSince: new Set<string>(),
    errorItem: null,
    artifacts,
  }
  return [...diff(snapshot, CONTEXT).reading.facts]
}

const ofType = (facts: readonly Fact[], type: string) => facts.filter((fact) => fact.type === type)

describe('a state fact', () => {
  it('says what happened to which session and turn, when, and who saw it', () => {
    expect(ofType(factsOf({ status: 'working' }), 'turn.started')).toEqual([
      {
        id: expect.stringMatching(/^evt_[\w-]{26}$/),
        type: 'turn.started',
        sessionId: 's',
        turnId: 't',
        at: 5000,
        family: 'state',
        seq: null,
        body: '{"turn":{"id":"t","status":"working"},"session":{"title":"T","metadata":{},"status":"idle"}}',
        seen: { poll: 4999 },
        subject: 'turn.started/t',
      },
    ])
  })

  it.each([
    ['an action in a turn', 't', 't'],
    ['an action in no turn', 7, null],
  ])('about %s names the turn, if there is one', (_, turn_id, turnId) => {
    const actions = [{ type: 'x', call_id: 'c', turn_id, created_at: 1 }]
    expect(ofType(factsOf({ status: 'working' }, { actions }), 'action.required')).toMatchObject([{ turnId }])
  })

  it('about a session names no turn', () => {
    expect(ofType(factsOf({}), 'session.created')).toMatchObject([{ turnId: null }])
  })

  it.each([
    ['completed', 'turn.completed'],
    ['failed', 'turn.failed'],
    ['cancelled', 'turn.ended'],
  ])('about the end of a turn that is %s is %s', (status, type) => {
    expect(factsOf({ status, completed_at: 3 }).map((fact) => fact.type)).toContain(type)
  })
})

describe('a settled turn', () => {
  const settled = (turn: object, artifacts: JsonObject[] | null): unknown => {
    const [fact] = ofType(
      factsOf({ completed_at: 3, artifacts: 'ready', ...turn }, { artifacts }),
      'turn.settled',
    )
    return JSON.parse(fact?.body ?? 'null')
  }

  it('has the artifacts that name it, under any spelling, and those that name none', () => {
    const own = [{ id: 'a' }, { turn_id: 't' }, { turnId: 't' }, { turn: 't' }, { turn_id: 7, turn: 't' }]
    const others = [{ turn_id: 'u' }, { turnId: 'u' }, { turn: 'u' }, { turn_id: 'u', turnId: 't' }]
    expect(settled({}, [...others, ...own])).toMatchObject({ artifacts: own })
  })

  it('lists the skipped artifacts, and distinguishes an empty list from an unreadable one', () => {
    const skipped = [{ path: 'a', reason: 'big' }]
    expect(settled({ artifacts_skipped: skipped }, [])).toMatchObject({
      artifacts: [],
      artifacts_skipped: skipped,
    })
    expect(settled({}, null)).toMatchObject({ artifacts: null, artifacts_skipped: [] })
  })
})
