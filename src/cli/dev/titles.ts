import type { Emulator } from '../../emulator/index.ts'

/** The title of a session for people, or its id where it has none. */
export type Titles = (sessionId: string | null) => string

/** The title is requested from the emulator once per session. */
export function titlesOf(emulator: Pick<Emulator, 'ledger'>): Titles {
  const titles = new Map<string, string>()
  return (sessionId) => {
    if (sessionId === null) return '(all sessions)'
    if (!titles.has(sessionId)) {
      // The largest cursor: no events are needed.
      const { sessions } = emulator.ledger(Number.MAX_SAFE_INTEGER)
      for (const { id, title } of sessions) titles.set(id, title)
    }
    return titles.get(sessionId) ?? sessionId
  }
}
