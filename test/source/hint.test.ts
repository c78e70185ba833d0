import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readWebhook } from '../../src/sidecar/source/webhook.ts'

const AT = 1_763_701_200_000

describe('the body of a webhook', () => {
  it.each([
    ['type and data', { type: 'turn.completed', data: { session_id: 's', turn_id: 't' } }],
    ['event and camel case', { event: 'turn.completed', data: { sessionId: 's', turnId: 't' } }],
    ['objects', { name: 'turn.completed', data: { object: { object: 'turn', id: 't', session_id: 's' } } }],
    [
      'nested ids',
      { id: 'evt_1', kind: 'turn.completed', data: { session: { id: 's' }, turn: { id: 't' } } },
    ],
  ])('names its turn in an envelope with %s', (_, body) => {
    expect(readWebhook(body, AT)).toEqual({
      readable: true,
      hint: {
        sessionId: 's',
        channel: 'webhook',
        at: AT,
        scope: 'turns',
        delay: 100,
        subject: 'turn.final/t',
      },
    })
  })

  it('of a session names the state that it claims', () => {
    const body = { type: 'session.action_required', data: { object: 'session', id: 's' } }
    expect(readWebhook(body, AT).hint).toMatchObject({
      sessionId: 's',
      scope: 'session',
      subject: 'session.requires_action/s',
    })
  })

  it.each([
    ['session.created', 'turns', 'session.created/s'],
    ['session.action_required', 'session', 'session.requires_action/s'],
    ['session.working', 'turns', 'session.working/s'],
    ['session.idle', 'turns', 'session.idle/s'],
    ['session.failed', 'turns', 'session.failed/s'],
    ['turn.completed', 'turns', 'turn.final/t'],
    ['turn.failed', 'turns', 'turn.final/t'],
  ])('named %s asks for %s and claims %s', (type, scope, subject) => {
    const { hint, readable } = readWebhook({ type, data: { session_id: 's', turn_id: 't' } }, AT)
    expect([readable, hint.scope, hint.subject]).toEqual([true, scope, subject])
  })

  it.each(['session_id', 'sessionId', 'session'])('may name its session %s, and its turn likewise', (key) => {
    const data = { [key]: 's', [key.replace('session', 'turn')]: 't' }
    expect(readWebhook({ type: 'turn.failed', data }, AT).hint).toMatchObject({
      sessionId: 's',
      subject: 'turn.final/t',
    })
  })

  it('is searched four levels deep and no deeper', () => {
    const at = (depth: number): unknown => (depth === 0 ? { session_id: 's' } : { data: at(depth - 1) })
    expect(readWebhook(at(3), AT).hint.sessionId).toBe('s')
    expect(readWebhook(at(4), AT)).toMatchObject({ readable: false, hint: { sessionId: null } })
  })

  it('that cannot be read asks for a sweep of sessions', () => {
    expect(readWebhook(null, AT).hint.scope).toBe('session')
  })

  it('with a name that does not exist yet still causes a read of its session', () => {
    const { hint } = readWebhook({ type: 'session.dreaming', data: { session_id: 's' } }, AT)
    expect(hint).toMatchObject({ sessionId: 's', scope: 'turns' })
  })

  it.each([
    [null],
    [17],
    ['text'],
    [[]],
    [{}],
    [{ type: 'turn.completed', data: {} }],
    [{ type: 'turn.completed', session_id: 's'.repeat(1000) }],
  ])('without a usable field (%j) requests a sweep and is not discarded', (body) => {
    expect(readWebhook(body, AT)).toMatchObject({ readable: false, hint: { sessionId: null } })
  })

  it('never throws and always makes a hint, whatever comes', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8 }), (body) => {
        expect(readWebhook(body, AT).hint.channel).toBe('webhook')
      }),
    )
  })
})
