import { expect, expectTypeOf, it } from 'vitest'
import { EVENT_FAMILIES, EVENT_TYPES } from '../../src/core/event-type.ts'
import { defineHandlers, isFact, verifyCallback } from '../../src/index.ts'
import type {
  ActionResource,
  ArtifactResource,
  Event,
  EventData,
  EventOf,
  EventType,
  Handlers,
  KnownType,
  OtherEvent,
  SessionResource,
  SessionSummary,
  Sidecar,
  TurnResource,
} from '../../src/index.ts'
import type { EventName } from '../../src/client/index.ts'

type TurnWord = NonNullable<TurnResource['status']>

it('the data of a state fact has the resource, with the fields that the interface states', () => {
  type Settled = EventOf<'turn.settled'>['data']
  expectTypeOf<Settled['turn']>().toEqualTypeOf<TurnResource>()
  expectTypeOf<Settled['artifacts']>().toEqualTypeOf<ArtifactResource[] | null>()
  expectTypeOf<Settled['artifacts_skipped'][number]['path']>().toEqualTypeOf<string | undefined>()
  expectTypeOf<Settled['session']>().toEqualTypeOf<SessionSummary>()
  expectTypeOf<ArtifactResource['id']>().toBeString()
  expectTypeOf<EventOf<'session.idle'>['data']['session']>().toEqualTypeOf<SessionResource>()
  expectTypeOf<NonNullable<SessionResource['required_actions']>>().toEqualTypeOf<ActionResource[]>()
  expectTypeOf<EventOf<'action.required'>['data']['action']['call_id']>().toBeString()
  expectTypeOf<EventOf<'call.answered'>['data']['call']['state']>().toEqualTypeOf<
    'answered' | 'not_delivered' | 'failed'
  >()
  expectTypeOf<EventOf<'turn.settled'>['session_id']>().toBeString()
  expectTypeOf<EventOf<'agent.message'>['session_id']>().toEqualTypeOf<string | null>()
})

it('nothing is promised that was not checked', () => {
  expectTypeOf<TurnResource['session_id']>().toEqualTypeOf<string | null | undefined>()
  expectTypeOf<TurnResource['completed_at']>().toEqualTypeOf<number | null | undefined>()
  expectTypeOf<SessionResource['title']>().toEqualTypeOf<string | null | undefined>()
  expectTypeOf<SessionResource['updated_at']>().toBeNumber()
  expectTypeOf<ActionResource['name']>().toEqualTypeOf<string | null | undefined>()
  expectTypeOf<ActionResource['arguments']>().toBeUnknown()
  expectTypeOf<TurnResource['colour']>().toBeUnknown()
})

it('words are known ones, or any other', () => {
  expectTypeOf<'completed'>().toExtend<TurnWord>()
  expectTypeOf<'dreaming'>().toExtend<TurnWord>()
  expectTypeOf<7>().not.toExtend<TurnWord>()
  // Not simplified to string: editors suggest the known ones.
  expectTypeOf<TurnWord>().not.toEqualTypeOf<string>()
})

it('the payload of a transcript fact or transient event has the fields that the interface states', () => {
  expectTypeOf<EventOf<'agent.message'>['data']['payload']['text']>().toEqualTypeOf<string | undefined>()
  expectTypeOf<EventOf<'agent.text'>['data']['payload']['delta']>().toEqualTypeOf<string | undefined>()
  expectTypeOf<EventOf<'agent.tool_call'>['data']['payload']['args']>().toBeUnknown()
  expectTypeOf<EventOf<'approval.resolved'>['data']['payload']['approved']>().toEqualTypeOf<
    boolean | undefined
  >()
  expectTypeOf<EventOf<'mcp.unavailable'>['data']['payload']['reason']>().toEqualTypeOf<string | undefined>()
  expectTypeOf<EventOf<'stream.turn.ended'>['data']['payload']['any']>().toBeUnknown()
  expectTypeOf<EventOf<'agent.message'>['data']['seq']>().toEqualTypeOf<string | number | null>()
})

it('a type that is not known is refused, and a misspelled one with it', () => {
  expectTypeOf<'turn.settled'>().toExtend<EventType>()
  expectTypeOf<'turn.*'>().toExtend<EventType>()
  expectTypeOf<'stream.turn.*'>().toExtend<EventType>()
  expectTypeOf<'*'>().toExtend<EventType>()
  expectTypeOf<'turn.setled'>().not.toExtend<EventType>()
  expectTypeOf<'foo.*'>().not.toExtend<EventType>()
  expectTypeOf<Parameters<Sidecar['on']>[0]>().toEqualTypeOf<EventType>()
  expectTypeOf<keyof Handlers>().toEqualTypeOf<EventType>()
})

it('the types and the program have the same event types', () => {
  expectTypeOf<EventData>().toHaveProperty('turn.settled')
  const types: { [Type in KnownType]: true } & { [Family in Exclude<EventType, KnownType | '*'>]: true } = {
    'session.created': true,
    'session.deleted': true,
    'session.working': true,
    'session.idle': true,
    'session.requires_action': true,
    'session.failed': true,
    'turn.started': true,
    'turn.completed': true,
    'turn.failed': true,
    'turn.ended': true,
    'turn.settled': true,
    'action.required': true,
    'action.resolved': true,
    'call.answered': true,
    'call.failed': true,
    'call.not_delivered': true,
    'stream.turn.started': true,
    'stream.turn.ended': true,
    'agent.message': true,
    'agent.tool_call': true,
    'agent.tool_result': true,
    'agent.compaction': true,
    'agent.error': true,
    'agent.todos': true,
    'user.message': true,
    'message.queued': true,
    'message.dequeued': true,
    'file.changed': true,
    'approval.requested': true,
    'approval.resolved': true,
    'question.asked': true,
    'question.answered': true,
    'tool.required': true,
    'tool.resolved': true,
    'mcp.unavailable': true,
    'sandbox.created': true,
    'sandbox.paused': true,
    'sandbox.resumed': true,
    'preview.ready': true,
    'workspace.recovery_failed': true,
    'artifact.created': true,
    'agent.text': true,
    'agent.thinking': true,
    'session.*': true,
    'turn.*': true,
    'action.*': true,
    'call.*': true,
    'stream.*': true,
    'stream.turn.*': true,
    'agent.*': true,
    'user.*': true,
    'message.*': true,
    'file.*': true,
    'approval.*': true,
    'question.*': true,
    'tool.*': true,
    'mcp.*': true,
    'sandbox.*': true,
    'preview.*': true,
    'workspace.*': true,
    'artifact.*': true,
  }
  expect(Object.keys(types).toSorted()).toEqual([...EVENT_TYPES, ...EVENT_FAMILIES].toSorted())
  // The client names the events of the stream as they are there.
  type OfStream = Exclude<KnownType, `${'session' | 'action' | 'call'}.${string}` | 'turn.settled'>
  expectTypeOf<Exclude<EventName, 'turn.started' | 'turn.ended'>>().toExtend<OfStream>()
})

it('an event is narrowed by its type', () => {
  const narrow = (event: Event): void => {
    expectTypeOf(verifyCallback).returns.toEqualTypeOf<Event>()
    expectTypeOf(event.id).toBeString()
    if (event.type === 'turn.settled') expectTypeOf(event).toEqualTypeOf<EventOf<'turn.settled'>>()
    if (event.type === 'agent.text')
      expectTypeOf(event.data.payload.delta).toEqualTypeOf<string | undefined>()
    if (isFact(event, 'session.failed')) expectTypeOf(event.data.session.status).toExtend<string>()
    if (event.type === 'turn.completed' || event.type === 'turn.failed')
      expectTypeOf(event.data.turn.id).toBeString()
  }
  expectTypeOf(narrow).toBeFunction()
})

it('a family and everything also bring types that this version does not know, and no transient ones', () => {
  expectTypeOf<OtherEvent>().toExtend<EventOf<'turn.*'>>()
  expectTypeOf<OtherEvent>().toExtend<EventOf<'*'>>()
  expectTypeOf<EventOf<'turn.settled'>>().toExtend<EventOf<'turn.*'>>()
  expectTypeOf<EventOf<'session.idle'>>().not.toExtend<EventOf<'turn.*'>>()
  expectTypeOf<EventOf<'agent.text'>>().not.toExtend<EventOf<'agent.*'>>()
  expectTypeOf<OtherEvent['data']['payload']>().toBeNullable()
  defineHandlers({
    on: {
      '*': (event) => expectTypeOf(event.id).toBeString(),
      'turn.settled': (event) => expectTypeOf(event.data.turn).toEqualTypeOf<TurnResource>(),
      'turn.*': (event) => {
        if (event.type === 'turn.settled') expectTypeOf(event.data.turn).toEqualTypeOf<TurnResource>()
      },
      'agent.message': (event) => expectTypeOf(event.data.payload.text).toEqualTypeOf<string | undefined>(),
    },
  })
})
