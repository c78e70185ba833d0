import type { Json } from '../std/json.ts'
import { fillPath } from '../std/path.ts'
import { CREATE_BODY_MAX } from './limits.ts'
import { listOf } from './list.ts'
import type { List } from './list.ts'
import { readFork, readReceipt } from './reply.ts'
import type { Fork, Receipt } from './reply.ts'
import type { ActOptions, CallOptions, NewSession, SessionChange, SessionQuery } from './request.ts'
import { readSession } from './resource.ts'
import type { Session } from './resource.ts'
import { openStream } from './stream.ts'
import type { EventStream, StreamOptions } from './stream.ts'
import { filled } from './template.ts'
import type { Transport } from './transport.ts'
import { inlineFile } from './upload.ts'
import type { InlineFile } from './upload.ts'
import { remove } from './remove.ts'

export interface Sessions {
  /**
   * If the service accepts a session with `input`, it has accepted the message, too. At the limit of sessions the
   * request fails at once.
   */
  create(session?: NewSession, options?: ActOptions): Promise<Session>
  list(query?: SessionQuery, options?: CallOptions): List<Session>
  get(sessionId: string, options?: CallOptions): Promise<Session>
  /** Takes effect on the turn after the one that is running. */
  update(sessionId: string, change: SessionChange, options?: CallOptions): Promise<Session>
  /** Also frees the session's slot, at once. */
  delete(sessionId: string, options?: CallOptions): Promise<void>
  fork(sessionId: string, options?: ActOptions): Promise<Fork>
  /** Sends a message; while a turn runs it is queued. There is no turn yet: its id comes by event, or in the turn list. */
  send(sessionId: string, text: string, options?: ActOptions): Promise<Receipt>
  /** Changes the running turn. @throws {ServiceError} `conflict` when none runs. */
  steer(sessionId: string, text: string, options?: ActOptions): Promise<Receipt>
  /** The events of one session. Open them before you send: without `after` they begin with the call. */
  events(sessionId: string, options?: StreamOptions): Promise<EventStream>
}

export function sessionsOf(transport: Transport): Sessions {
  const say = (session: string, text: string, steers: boolean, options?: ActOptions): Promise<Receipt> => {
    const body = (): Json => {
      const { messageBody, steerBody } = transport.found
      const values = { text, session_id: session }
      return steers
        ? filled(steerBody, values, 'body of a message that steers', 'steer_body')
        : filled(messageBody, values, 'body of a message', 'message_body')
    }
    const request = { ids: { session }, body, act: options ?? true } as const
    return transport.call('sendMessage', request, options, readReceipt, 'the reply to a message')
  }
  return {
    create: (session = {}, options) =>
      transport.within('createSession', options, async (operation) => {
        const files = await seeded(session)
        const body = (): object => bodyOf(session, files, () => transport.found.inputBody)
        const request = { body, act: options ?? true, limit: CREATE_BODY_MAX } as const
        return transport.read(operation, request, readSession, 'a session')
      }),
    list: ({ metadata, ...query } = {}, options) =>
      listOf(
        transport,
        {
          operation: 'listSessions',
          query: { ...query, metadata: pairOf(metadata) },
          read: readSession,
          what: 'a session',
        },
        options,
      ),
    get: (session, options) =>
      transport.call('readSession', { ids: { session } }, options, readSession, 'a session'),
    update: (session, change, options) =>
      transport.call(
        'updateSession',
        { ids: { session }, body: () => change },
        options,
        readSession,
        'a session',
      ),
    delete: (session, options) => remove(transport, 'deleteSession', { session }, options),
    fork: (session, options) =>
      transport.call('forkSession', { ids: { session }, act: options ?? true }, options, readFork, 'a fork'),
    send: (session, text, options) => say(session, text, false, options),
    steer: (session, text, options) => say(session, text, true, options),
    events: (session, options) => {
      const pathOf = async () => fillPath(await transport.routeOf('sessionStream'), { session }, session)
      return openStream(transport, pathOf, options)
    },
  }
}

/** The files for the workspace, read before any request is sent. */
async function seeded({ environment }: NewSession): Promise<InlineFile[] | null> {
  if (environment?.files === undefined) return null
  const files: InlineFile[] = []
  let room = CREATE_BODY_MAX
  for await (const file of environment.files) {
    const read = await inlineFile(file, room)
    room -= read.data.length
    files.push(read)
  }
  return files
}

function bodyOf(session: NewSession, files: InlineFile[] | null, template: () => Json | null): object {
  const { input, environment } = session
  return {
    ...session,
    ...(environment === undefined
      ? {}
      : { environment: files === null ? environment : { ...environment, files } }),
    ...(typeof input === 'string'
      ? { input: filled(template(), { text: input }, 'shape for input', 'input_body') }
      : {}),
  }
}

function pairOf(metadata: Record<string, string> | undefined): string | undefined {
  if (metadata === undefined) return undefined
  const [pair, ...more] = Object.entries(metadata)
  if (pair === undefined || more.length > 0) throw new TypeError('metadata: the service filters by one pair')
  if (pair[0].includes(':')) throw new TypeError('metadata: the service cannot filter by a name with a colon')
  return pair.join(':')
}
