import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../src/std/json.ts'
import { readAction, readTurn } from '../../src/core/wire.ts'
import { actionData, endType, settledData, stateFact, turnData } from '../../src/sidecar/intake/facts.ts'

const BRIEF = { title: 'T', metadata: {}, status: 'idle' }
const turn = (fields: object = {}) => readTurn({ id: 't', status: 'completed', ...fields }, 's')

function factOf(data: JsonObject) {
  const context = { now: 5000, seen: { poll: 4999 } }
  return stateFact('turn.started', 'turn.started/t', ['t'], 's', data, context)
}

describe('a state fact', () => {
  it('says what happened to which session and turn, when, and who saw it', () => {
    expect(factOf(turnData(turn(), BRIEF))).toEqual({
      id: expect.stringMatching(/^evt_[\w-]{26}$/),
      type: 'turn.started',
      sessionId: 's',
      turnId: 't',
      at: 5000,
      family: 'state',
      seq: null,
      body: '{"turn":{"id":"t","status":"completed"},"session":{"title":"T","metadata":{},"status":"idle"}}',
      seen: { poll: 4999 },
      subject: 'turn.started/t',
    })
  })

  it.each([
    ['an action in a turn', actionData(readAction({ type: 'x', call_id: 'c', turn_id: 't' }), BRIEF), 't'],
    ['an action in no turn', actionData(readAction({ type: 'x', call_id: 'c', turn_id: 7 }), BRIEF), null],
    ['a session', { session: { id: 's', turn_id: 't' } }, null],
  ])('about %s names the turn, if there is one', (_, data, turnId) => {
    expect(factOf(data).turnId).toBe(turnId)
  })

  it.each([
    ['completed', 'turn.completed'],
    ['failed', 'turn.failed'],
    ['cancelled', 'turn.ended'],
  ])('about the end of a turn that is %s is %s', (status, type) => {
    expect(endType(turn({ status }))).toBe(type)
  })
})

describe('a settled turn', () => {
  it('has the artifacts that name it, under any spelling, and those that name none', () => {
    const own = [{ id: 'a' }, { turn_id: 't' }, { turnId: 't' }, { turn: 't' }, { turn_id: 7, turn: 't' }]
    const others = [{ turn_id: 'u' }, { turnId: 'u' }, { turn: 'u' }, { turn_id: 'u', turnId: 't' }]
    expect(settledData(turn(), BRIEF, [...others, ...own]).artifacts).toEqual(own)
  })

  it('says which artifacts were left out, and tells none from a list that could not be read', () => {
    const skipped = [{ path: 'a', reason: 'big' }]
    expect(settledData(turn({ artifacts_skipped: skipped }), BRIEF, [])).toMatchObject({
      artifacts: [],
      artifacts_skipped: skipped,
    })
    expect(settledData(turn(), BRIEF, null)).toMatchObject({ artifacts: null, artifacts_skipped: [] })
  })
})
