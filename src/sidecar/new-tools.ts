import type { Clock } from '../std/ports.ts'
import type { Store } from '../core/store.ts'
import type { Intake } from './intake/commit.ts'

/** Names of the tools that the last run ran. */
const TOOLS = 'tools'
/** Sessions that one commit hints at. */
const PAGE = 500

/**
 * A session that waits for a call of a tool that is new here has not changed, so that nothing else would look at it: all
 * that are not at rest are read once.
 */
export async function lookForNewTools(
  { store, intake, clock }: { store: Store; intake: Pick<Intake, 'hint'>; clock: Clock },
  names: readonly string[],
): Promise<void> {
  const noted = await store.settings.checkpoint(TOOLS)
  const now = names.toSorted().join(' ')
  if (noted === now) return
  const before = new Set(noted?.split(' '))
  if (noted !== null && names.some((name) => !before.has(name))) {
    let ids = await store.resources.active('', PAGE)
    for (let last = ids.at(-1); last !== undefined; last = ids.at(-1)) {
      await intake.hint(
        ids.map((sessionId) => ({ sessionId, channel: 'poll', at: clock.now(), scope: 'session', delay: 0 })),
      )
      ids = await store.resources.active(last, PAGE)
    }
  }
  await store.settings.setCheckpoint(TOOLS, now)
}
