import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Meaning } from '../../src/protocol/frame.ts'
import type { Hint } from '../../src/core/hint.ts'
import { readFrame } from '../../src/sidecar/intake/frame.ts'

const AT = 1_763_701_200_000

function frame(data: unknown, id?: string, event = 'agent.message') {
  return { event, id, data: typeof data === 'string' ? data : JSON.stringify(data) }
}

function fact(meaning: Meaning) {
  if (meaning.kind !== 'fact') throw new Error(`a ${meaning.kind}, not a fact`)
  return meaning.fact
}

describe('a frame of the stream', () => {
  it.each([
    ['session_id in the data', { session_id: 's1', turn_id: 't1' }, {}],
    ['sessionId in the data', { sessionId: 's1', turnId: 't1' }, {}],
    ['session_id in the payload', {}, { session_id: 's1', turn_id: 't1' }],
    ['sessionId in the payload', {}, { sessionId: 's1', turnId: 't1' }],
    ['objects', { session: { id: 's1' }, turn: { id: 't1' } }, {}],
    ['one here and one there', { session: 's1' }, { turn: 't1' }],
  ])('names its session and turn by %s', (_, data, payload) => {
    const read = fact(readFrame(frame({ type: 'agent.message', seq: 7, payload, ...data }, '7'), AT))
    expect([read.sessionId, read.turnId]).toEqual(['s1', 't1'])
  })

  it('whose seq is no number still has an id that fits into a header and a path', () => {
    const { id, seq } = fact(readFrame(frame({ type: 'x', session_id: 's1', payload: {} }, '7:a/b%20'), AT))
    expect(seq).toBe('7:a/b%20')
    expect(id).toMatch(/^evt_[A-Za-z0-9_-]+$/)
    expect(id).not.toContain('7:a')
  })

  it.each(['7 ', 'nö', '7\u2028', 'x'.repeat(257)])(
    'with the id %j goes into quarantine: it could not be sent back as a cursor',
    (id) => {
      expect(readFrame(frame({ type: 'x', seq: 7, payload: {} }, id), AT)).toEqual({
        kind: 'unreadable',
        reason: 'its id cannot be sent back as a cursor',
        seq: null,
      })
    },
  )

  it('has one id however often it is replayed, and another in another session', () => {
    const one = fact(readFrame(frame({ type: 'x', seq: 7, session_id: 's1', payload: {} }, '7'), AT))
    const again = fact(readFrame(frame({ type: 'x', seq: 7, session_id: 's1', payload: {} }, '7'), AT + 5))
    const other = fact(readFrame(frame({ type: 'x', seq: 7, session_id: 's2', payload: {} }, '7'), AT))
    expect(again.id).toBe(one.id)
    expect(other.id).not.toBe(one.id)
    expect(one.id).toMatch(/^[A-Za-z0-9_-]+$/)
  })

  it('keeps every digit of a seq beyond 2^53', () => {
    const text = '{"type":"x","seq":9007199254740993,"session_id":"s","payload":{}}'
    expect(readFrame(frame(text), AT)).toMatchObject({ kind: 'fact', seq: '9007199254740993' })
    expect(readFrame(frame(text, '9007199254740993'), AT)).toMatchObject({ seq: '9007199254740993' })
  })

  it('is transient without a seq: nothing is stored, and nothing is read', () => {
    const read = readFrame(
      frame({ type: 'agent.text', seq: null, session_id: 's', payload: { delta: 'a' } }),
      AT,
    )
    expect(read).toMatchObject({ kind: 'transient', type: 'agent.text', sessionId: 's' })
  })

  it.each([
    ['data', { type: 'replay.stopped', from_seq: 41 }],
    ['payload', { type: 'anything', seq: null, payload: { from_seq: '41' } }],
  ])('stops the replay when its %s carries from_seq, whatever its name', (_, data) => {
    expect(readFrame(frame(data), AT)).toEqual({ kind: 'stop', fromSeq: '41' })
  })

  it('is an event like any other where it is persisted, though it carries from_seq', () => {
    const data = { type: 'agent.compaction', session_id: 's', payload: { from_seq: 1, to_seq: 1 } }
    expect(readFrame(frame(data, '2'), AT)).toMatchObject({ kind: 'fact', seq: '2' })
    expect(readFrame(frame({ ...data, seq: 2 }), AT)).toMatchObject({ kind: 'fact', seq: '2' })
  })

  it('keeps the names of state facts for state facts', () => {
    const ended = readFrame(
      frame({ type: 'turn.ended', seq: 3, session_id: 's', turn_id: 't', payload: {} }, '3'),
      AT,
    )
    expect(fact(ended).type).toBe('stream.turn.ended')
    expect(ended).toMatchObject({
      hints: [{ scope: 'turns', subject: 'turn.final/t' }],
    })
  })

  it('becomes a fact of the transcript, with its text as it came', () => {
    const data =
      '{"type": "agent.message", "seq": 7, "session_id": "s", "turn_id": "t", "payload": {"n": 1.50}}'
    expect(fact(readFrame({ event: 'other', id: '8', data }, AT))).toEqual({
      id: expect.stringMatching(/^evt_8_/),
      type: 'agent.message',
      sessionId: 's',
      turnId: 't',
      at: AT,
      family: 'transcript',
      seq: '8',
      body: data,
      seen: { stream: AT },
      subject: null,
    })
  })

  it.each([
    ['a turn that starts', 'turns', 30, 'turn.started/t', ['turn.started']],
    ['a turn that ends', 'turns', 60, 'turn.final/t', ['turn.ended']],
    [
      'what waits for an answer, at once',
      'session',
      0,
      'action.required/c',
      ['tool.required', 'approval.requested', 'question.asked'],
    ],
    [
      'what has its answer',
      'session',
      300,
      'action.resolved/c',
      ['tool.resolved', 'approval.resolved', 'question.answered'],
    ],
    [
      'what may change a turn',
      'turns',
      300,
      undefined,
      ['agent.error', 'workspace.recovery_failed', 'message.dequeued'],
    ],
    ['an artifact', 'artifacts', 400, undefined, ['artifact.created']],
    ['a name that does not exist yet', 'turns', 1000, undefined, ['agent.dreamt', 'turn.started.again']],
  ])('about %s asks to read the %s after %i ms', (_, scope, delay, subject, names) => {
    for (const type of names) {
      const read = readFrame(
        frame({ type, session_id: 's', turn_id: 't', payload: { call_id: 'c' } }, '3'),
        AT,
      )
      const hint = { sessionId: 's', channel: 'stream', at: AT, scope, delay }
      expect([type, read]).toEqual([
        type,
        expect.objectContaining({ hints: [subject === undefined ? hint : { ...hint, subject }] }),
      ])
    }
  })

  it.each([
    'agent.message',
    'agent.tool_call',
    'agent.tool_result',
    'agent.compaction',
    'agent.todos',
    'user.message',
    'message.queued',
    'file.changed',
    'sandbox.created',
    'sandbox.paused',
    'sandbox.resumed',
    'preview.ready',
  ])('named %s changes no state, so nothing is read', (type) => {
    expect(readFrame(frame({ type, session_id: 's', payload: {} }, '3'), AT)).toMatchObject({ hints: [] })
  })

  it('announces nothing about a turn or a call that it does not name', () => {
    for (const type of ['turn.ended', 'tool.required']) {
      const [hint] = (readFrame(frame({ type, session_id: 's' }, '3'), AT) as { hints: Hint[] }).hints
      expect(hint).not.toHaveProperty('subject')
    }
  })

  it('with an empty id line has none: its seq is in the data', () => {
    expect(readFrame(frame({ type: 'x', seq: 7, session_id: 's' }, ''), AT)).toMatchObject({
      kind: 'fact',
      seq: '7',
    })
  })

  it('without a type in its data has its event for a name', () => {
    expect(readFrame(frame({ seq: 7 }, undefined, 'agent.message'), AT)).toMatchObject({
      name: 'agent.message',
    })
  })

  it('with an unknown name is stored and causes a read', () => {
    const read = readFrame(frame({ type: 'agent.dreamt', seq: 3, session_id: 's', payload: {} }, '3'), AT)
    expect(read).toMatchObject({
      kind: 'fact',
      fact: { type: 'agent.dreamt' },
      hints: [{ sessionId: 's', scope: 'turns' }],
    })
  })

  it('that names no session asks for a sweep', () => {
    const read = readFrame(frame({ type: 'turn.ended', seq: 3, payload: {} }, '3'), AT)
    expect(read).toMatchObject({
      fact: { sessionId: null },
      hints: [{ sessionId: null, channel: 'stream', at: AT, scope: 'session', delay: 2000 }],
    })
  })

  it.each([
    ['data is not JSON', '{"type":'],
    ['data is not an object', '[1]'],
    ['the frame has no type', '{"seq":4}'],
  ])('that cannot be read (%s) still moves the cursor', (reason, data) => {
    expect(readFrame({ event: undefined, id: '4', data }, AT)).toEqual({
      kind: 'unreadable',
      reason,
      seq: '4',
    })
  })

  it('that nests too deep to be written again goes into quarantine; brackets in a text do not count', () => {
    const nested = (levels: number, more = ''): string =>
      `{"type":"x","session_id":"s1","payload":{"a":${'['.repeat(levels)}${more}${']'.repeat(levels)}}}`
    expect(readFrame(frame(nested(20_000), '7'), AT)).toEqual({
      kind: 'unreadable',
      reason: 'data nests too deep',
      seq: '7',
    })
    const text = JSON.stringify(`\\"${'[{'.repeat(5000)}`)
    expect(readFrame(frame(nested(400, text), '7'), AT).kind).toBe('fact')
    expect(readFrame(frame(nested(1, Array(3000).fill('[]').join()), '7'), AT).kind).toBe('fact')
    expect(() => JSON.stringify(JSON.parse(nested(490)))).not.toThrow()
  })

  it('with an id that no index of the store takes goes into quarantine', () => {
    const id = 'x'.repeat(1000)
    for (const ids of [{ session_id: id }, { session_id: 's1', turn_id: id }])
      expect(readFrame(frame({ type: 'agent.message', ...ids, payload: {} }, '7'), AT)).toEqual({
        kind: 'unreadable',
        reason: 'an id in it is too long',
        seq: '7',
      })
    const call = frame({ type: 'tool.required', session_id: 's1', payload: { call_id: id } }, '8')
    expect(readFrame(call, AT)).toMatchObject({ kind: 'fact', hints: [{ sessionId: 's1', delay: 0 }] })
    expect(readFrame(call, AT)).not.toHaveProperty('hints.0.subject')
  })

  it('never throws, whatever comes', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.json(), fc.string()),
        fc.option(fc.string(), { nil: undefined }),
        fc.option(fc.string(), { nil: undefined }),
        (data, id, event) => {
          expect(['fact', 'transient', 'stop', 'unreadable']).toContain(
            readFrame({ data, id, event }, AT).kind,
          )
        },
      ),
    )
  })

  it('never treats a prototype name as an event', () => {
    for (const name of ['__proto__', 'constructor', 'toString']) {
      const read = readFrame(frame({ type: name, seq: 1, session_id: 's', payload: {} }, '1'), AT)
      expect(read).toMatchObject({ kind: 'fact', fact: { type: name }, hints: [{ sessionId: 's' }] })
    }
  })
})
