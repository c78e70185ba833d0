import { newWorkspace } from '../sandbox.ts'
import type { Session } from '../session.ts'
import type { World } from '../world.ts'
import type { DataFile } from './file.ts'
import { eventSchema, sessionSchema, turnSchema } from './schema.ts'
import {
  readSession,
  readTurn,
  readWorkspace,
  writeSession,
  writeTurn,
  type SessionRecord,
} from './session-record.ts'
import { journal, shelf, type Kept } from './shelf.ts'

/** A session whose agent was at work when the emulator stopped. */
export interface Interrupted {
  readonly session: Session
  readonly turnId: string | null
  readonly collectMs: number | null
}

/** Sessions, their turns, and the events, in the order in which they have to be loaded. */
export function keptSessions(file: DataFile, world: World, interrupted: Interrupted[]): Kept[] {
  const { sessions, log } = world
  const all = (): Session[] => [...sessions.live(), ...sessions.deleted()]
  const byId = new Map<string, Session>()
  return [
    shelf({
      kind: 'session',
      schema: sessionSchema,
      entries: all,
      idOf: ({ id }) => id,
      final: ({ deletedAt }) => deletedAt !== null,
      write: (session) => writeSession(file, session),
      read: (record) => {
        const session = makeSession(file, world, record)
        byId.set(session.id, session)
        if (record.run !== null) interrupted.push({ session, ...record.run })
        return session
      },
      restore: (session) => sessions.restore(session),
    }),
    shelf({
      kind: 'turn',
      schema: turnSchema,
      entries: () => all().flatMap(({ turns }) => turns),
      idOf: ({ id }) => id,
      final: ({ artifacts }) => artifacts === 'ready' || artifacts === 'partial' || artifacts === 'failed',
      write: (turn) => writeTurn(file, turn),
      read: (record) => readTurn(file, record),
      restore: (turn) => void byId.get(turn.sessionId)?.turns.push(turn),
    }),
    journal({
      kind: 'event',
      schema: eventSchema,
      first: () => log.first,
      from: (seq) => log.after(seq - 1),
      write: (event) => ({ ...event, payload: { ...event.payload } }),
      read: (record) => record,
      restore: (events, first) => {
        log.restore(events, first)
        for (const event of events) {
          const session = byId.get(event.sessionId)
          if (session?.deletedAt === null && world.details.item.typeOf(event.type) !== undefined)
            session.items.push(event)
        }
      },
    }),
  ]
}

function makeSession(file: DataFile, world: World, record: SessionRecord): Session {
  const session: Session = {
    ...readSession(file, record),
    actions: record.actions.flatMap((callId) => world.ledger.findAction(record.id, callId) ?? []),
    turns: [],
    items: [],
    run: null,
    workspace: newWorkspace(world, () => session),
  }
  session.workspace.restore(readWorkspace(file, record.workspace))
  return session
}
