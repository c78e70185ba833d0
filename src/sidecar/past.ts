import { existsSync } from 'node:fs'
import path from 'node:path'
import { ITEMS_SINCE } from '../core/checkpoint.ts'
import { messageOf } from '../std/errors.ts'
import type { Clock, Log } from '../std/ports.ts'
import { inScope, scopeText, type OwnerNote, type Scope } from '../core/scope.ts'
import type { Store } from '../core/store.ts'
import type { StoreReader } from '../core/store-reader.ts'
import type { Intake } from './intake/commit.ts'
import { forgetCursor } from './source/cursor.ts'
import { checkpointIn, schemaIn } from './store/sqlite/inspect.ts'

/** The usual name of a configuration. */
const CONFIG_FILE = 'sidecar.yaml'
/** The checkpoint with the `service.base_url` of the last run. */
const HEARD = 'service'

/** The first schema whose versions resolve a relative `store.url` against the configuration. */
const PLACED = 8

/**
 * A new user tries one example in one folder, and the next one in another: the store in `file`, in the working
 * directory, belongs to the configuration beside it. Without one, the configuration was moved to another folder, and
 * the store is left behind. @returns whether the store is known to belong to another configuration.
 */
export function isOfAnother(file: string, baseUrl: string): boolean {
  const heard = checkpointIn(file, HEARD)
  if (heard !== null && heard !== baseUrl) return true
  const folder = path.dirname(file)
  const isConfigured = [folder, path.dirname(folder)].some((one) => existsSync(path.join(one, CONFIG_FILE)))
  return isConfigured && schemaIn(file) >= PLACED
}

/** Warns about a store that is of another service. */
export async function warnOfService(
  store: Pick<Store, 'settings'>,
  baseUrl: string,
  log: Log,
): Promise<void> {
  const before = await store.settings.checkpoint(HEARD)
  if (before === baseUrl) return
  await store.settings.setCheckpoint(HEARD, baseUrl)
  if (before !== null)
    log.warn(
      { before, now: baseUrl },
      'store: it has sessions and a cursor from another service.base_url. If that is another service, stop, and set ' +
        'store.url to another store',
    )
}

/** Warns about the backlogs of removed handlers. With a long backlog, the count may fail; a start does not wait for it. */
export async function warnOfBacklogs(
  store: Pick<StoreReader, 'counts'>,
  handlers: readonly { name: string }[],
  log: Log,
): Promise<void> {
  try {
    const { deliveries } = await store.counts()
    for (const [handler, { pending }] of Object.entries(deliveries)) {
      if (pending === 0 || handlers.some(({ name }) => name === handler)) continue
      log.warn(
        { handler, pending },
        'store: deliveries wait for a handler that is not configured: they are sent when a handler has that name again',
      )
    }
  } catch (error) {
    log.debug({ error: messageOf(error) }, 'store: the deliveries of removed handlers could not be counted')
  }
}

/** The checkpoint with the scope of the last run. */
const SCOPE = 'scope'
/** Sessions that one commit decides on. */
const SESSIONS = 200

/**
 * When the scope changed since the last run, every session is checked again. A session that was ours is decided at
 * once, by its stored state. Of a foreign session only the id is stored, so the first list of this run decides. After a
 * crash in between, the next start does this again. Only the leader does it.
 * @returns whether owners must be checked: without a scope, only while entries of an earlier scope are left.
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
  if (before !== now && store.shards.leads) {
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

/** @returns how many sessions are no longer ours. */
async function decideAnew(store: Store, scope: Scope, clock: Clock): Promise<number> {
  let left = 0
  let ids = await store.resources.alive('', SESSIONS)
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
    ids = await store.resources.alive(last, SESSIONS)
  }
  return left
}

/** The checkpoint with the source of the transcript in the last run. */
const TRANSCRIPT = 'transcript'

/**
 * When the stream was turned off or on since the last run, the transcript comes from another source: items or frames.
 * The ids of their facts differ, so the new source begins at this start. Otherwise delivered facts would be repeated
 * under other ids.
 */
export async function markTranscript(store: Store, log: Log, source: 'stream' | 'items'): Promise<void> {
  const before = await store.settings.checkpoint(TRANSCRIPT)
  if (before === source) return
  if (before !== null) {
    log.warn(
      { before, now: source },
      'transcript: its source changed since the last run; it continues with what happens from this start on',
    )
    // The service's clock is not known yet: the first read of items sets the time.
    await (source === 'stream' ? forgetCursor(store) : store.settings.setCheckpoint(ITEMS_SINCE, ''))
  }
  await store.settings.setCheckpoint(TRANSCRIPT, source)
}

/** The checkpoint with the names of the tools of the last run. */
const TOOLS = 'tools'
/** Sessions that get a hint in one commit. */
const HINTS = 500

/**
 * A session that waits for a call of a new tool has not changed, so nothing else would cause a read of it. All sessions that
 * are not idle are read once.
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
    let ids = await store.resources.active('', HINTS)
    for (let last = ids.at(-1); last !== undefined; last = ids.at(-1)) {
      await intake.hint(
        ids.map((sessionId) => ({ sessionId, channel: 'poll', at: clock.now(), scope: 'session', delay: 0 })),
      )
      ids = await store.resources.active(last, HINTS)
    }
  }
  await store.settings.setCheckpoint(TOOLS, now)
}
