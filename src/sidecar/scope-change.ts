import type { Clock, Log } from '../std/ports.ts'
import { inScope, scopeText, type OwnerNote, type Scope } from '../core/scope.ts'
import type { Store } from '../core/store.ts'

/** The scope of the last run. */
const SCOPE = 'scope'
/** Sessions that one commit decides on. */
const PAGE = 200

/**
 * A scope that changed between two runs. What we know of a session decides at once whether it stays ours; one that was
 * foreign is known by its id alone, and the first list of this run decides. A crash in between starts over.
 * @returns whether owners have to be looked at: without a scope, only as long as an earlier one left any.
 */
export async function applyScope(
  store: Store,
  scope: Scope | null,
  ports: { clock: Clock; log: Log },
): Promise<boolean> {
  const now = scopeText(scope)
  const noted = await store.settings.checkpoint(SCOPE)
  if (noted === null && scope === null) return false
  const before = noted ?? ''
  if (before !== now) {
    const left = scope === null ? 0 : await decideAnew(store, scope, ports.clock)
    ports.log.warn(
      { before, now, left },
      'scope: it changed since the last run; every session is checked again',
    )
    await store.settings.setCheckpoint(SCOPE, now)
  }
  if (scope !== null) return true
  const [[stranger], { frames }] = await Promise.all([
    store.resources.strangers(-Infinity, '', 1),
    store.resources.heldFrames(),
  ])
  return stranger !== undefined || frames > 0
}

/** @returns how many sessions are not ours any more. */
async function decideAnew(store: Store, scope: Scope, clock: Clock): Promise<number> {
  let left = 0
  let ids = await store.resources.alive('', PAGE)
  for (let last = ids.at(-1); last !== undefined; last = ids.at(-1)) {
    const owners: OwnerNote[] = []
    for (const sessionId of ids) {
      const known = await store.resources.known(sessionId)
      if (known === null) continue
      const owner = inScope(known.session, scope) ? 'ours' : 'foreign'
      if (owner === 'foreign') left++
      owners.push({ sessionId, owner, at: clock.now() })
    }
    await store.log.commit({ scoped: true, owners })
    ids = await store.resources.alive(last, PAGE)
  }
  return left
}
