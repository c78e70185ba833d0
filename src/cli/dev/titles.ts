import type { Emulator } from '../../emulator/index.ts'

/** The title of a session for people, or its id where it has none. */
export type Titles = (sessionId: string | null) => string

/** The emulator knows the titles; it is asked once a session. */
export function titlesOf(emulator: Pick<Emulator, 'ledger'>): Titles {
  const titles = new Map<string, string>()
  return (sessionId) => {
    if (sessionId === null) return '(all sessions)'
    if (!titles.has(sessionId)) {
      // No events are wanted: only those after the last one there can be.
      const { sessions } = emulator.ledger(Number.MAX_SAFE_INTEGER)
      for (const { id, title } of sessions) titles.set(id, title)
    }
    return titles.get(sessionId) ?? sessionId
  }
}
