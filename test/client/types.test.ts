import { expectTypeOf, it } from 'vitest'
import { isEvent } from '../../src/client/index.ts'
import type {
  Agent,
  CallAnswer,
  Client,
  Download,
  EventStream,
  List,
  NewSession,
  Page,
  RequiredAction,
  ServiceError,
  Session,
  StreamEvent,
  ToolInput,
  Turn,
} from '../../src/client/index.ts'

it('resources have the types of the document, and fields beyond them are reachable as unknown', () => {
  expectTypeOf<Session['id']>().toEqualTypeOf<string>()
  expectTypeOf<Session['updated_at']>().toEqualTypeOf<number | null>()
  expectTypeOf<Session['metadata']>().toEqualTypeOf<Record<string, string>>()
  expectTypeOf<Session['required_actions']>().toEqualTypeOf<RequiredAction[]>()
  expectTypeOf<Session['environment']['repo']['branch']>().toEqualTypeOf<string | null>()
  expectTypeOf<Session['colour']>().toEqualTypeOf<unknown>()
  expectTypeOf<Turn['artifacts_skipped'][number]['path']>().toEqualTypeOf<string>()
  expectTypeOf<Agent['model_credential_id']>().toEqualTypeOf<string | null>()
  expectTypeOf<RequiredAction['arguments']>().toEqualTypeOf<unknown>()
})

it('words are known ones, or any other', () => {
  expectTypeOf<'requires_action'>().toExtend<Session['status']>()
  expectTypeOf<'dreaming'>().toExtend<Session['status']>()
  expectTypeOf<7>().not.toExtend<Session['status']>()
})

it('requests take what the document says', () => {
  expectTypeOf<{ input: string }>().toExtend<NewSession>()
  expectTypeOf<{ agent: { model_credential_id: string } }>().toExtend<NewSession>()
  expectTypeOf<{ metadata: { count: number } }>().not.toExtend<NewSession>()
  expectTypeOf<{ type: 'function'; name: string }>().toExtend<ToolInput>()
  expectTypeOf<Session['agent']['tools'][number]>().toExtend<ToolInput>()
  expectTypeOf<{ output: { any: 'thing' } }>().toExtend<CallAnswer>()
  expectTypeOf<{ error: Error }>().not.toExtend<CallAnswer>()
})

it('methods give what they say', () => {
  expectTypeOf<ReturnType<Client['sessions']['create']>>().toEqualTypeOf<Promise<Session>>()
  expectTypeOf<ReturnType<Client['turns']['list']>>().toEqualTypeOf<List<Turn>>()
  expectTypeOf<ReturnType<List<Turn>['page']>>().toEqualTypeOf<Promise<Page<Turn>>>()
  expectTypeOf<ReturnType<Client['events']['stream']>>().toEqualTypeOf<Promise<EventStream>>()
  expectTypeOf<ReturnType<Client['artifacts']['archive']>>().toEqualTypeOf<Promise<Download>>()
  expectTypeOf<Client['sessions']['create']>()
    .parameter(1)
    .toExtend<{ idempotencyKey?: string } | undefined>()
})

it('an event is narrowed by its name', () => {
  const narrow = (event: StreamEvent): void => {
    expectTypeOf(event.payload['text']).toEqualTypeOf<unknown>()
    if (isEvent(event, 'agent.message')) expectTypeOf(event.payload.text).toEqualTypeOf<string>()
    if (isEvent(event, 'approval.resolved')) expectTypeOf(event.payload.approved).toEqualTypeOf<boolean>()
    // @ts-expect-error: no such name
    isEvent(event, 'agent.massage')
  }
  expectTypeOf(narrow).toBeFunction()
})

it('an error has the fields that are needed to act on it', () => {
  expectTypeOf<
    Pick<ServiceError, 'code' | 'status' | 'requestId' | 'retryAfter' | 'operation' | 'message'>
  >().toEqualTypeOf<{
    readonly code: string
    readonly status: number
    readonly requestId: string | null
    readonly retryAfter: number | null
    operation: string | null
    message: string
  }>()
})
