import type { Bus, Subscriber } from '../../core/bus.ts'
import type { Hint } from '../../core/hint.ts'
import type { TransientEvent } from '../../core/observer.ts'
import { BoundedMap } from '../../std/bounded-map.ts'
import type { Clock, Log } from '../../std/ports.ts'
import type { Session } from '../../core/resource.ts'
import { inScope, type HeldFrames, type OwnerNote, type OwnerRecord, type Scope } from '../../core/scope.ts'
import type { ShardTopics } from '../../core/shards.ts'
import type { Batch, Store } from '../../core/store.ts'

/**
 * The most frames that wait until their sessions are read. At the limit no further frame is read from the stream. The
 * service keeps the rest, so nothing is lost. One batch (1,000 frames) more may be stored.
 */
const HELD_FRAMES = 10_000
const HELD_CHARACTERS = 16 * 1024 * 1024
/** Sessions whose owner is cached for transient events; the owner of others is looked up in the store. */
const REMEMBERED = 10_000
/** Another replica may change the owner of a session: how long a cached owner may be out of date, milliseconds. */
const CURRENT = 5000
/** The most concurrent lookups for transient events; further events are dropped, as under any load. */
const LOOKUPS = 100

/**
 * Separates the sessions of this sidecar from those of others in the organization (config/README.md, Several sidecars).
 */
export interface Ownership extends Required<Pick<Subscriber, 'ownersNoted'>>, Pick<ShardTopics, 'woken'> {
  readonly filter: Readonly<Pick<HintFilter, 'active'>>
  /** Whether the resource itself is in the scope. */
  isOurs(session: Session): boolean
  /** The stored owner; null: none. */
  noted(sessionId: string): Promise<OwnerRecord | null>
  /**
   * Returns the sessions of a page that are ours or must be read to find their owner. Stores the others as foreign, and
   * those that came into the scope as pending. `latest`: the time of the page, on the service's clock.
   */
  sortPage(sessions: readonly Session[], latest: number): Promise<Session[]>
  note(sessionId: string, owner: OwnerNote['owner']): Promise<void>
  /** Publishes a transient event of a session that is known to be ours. */
  publishTransient(event: TransientEvent): void
  /** null: there is room for frames; otherwise resolves when there is. Rejects when `signal` aborts. */
  room(signal: AbortSignal): Promise<void> | null
}

/** What the intake needs to know of sessions that are not ours. */
export interface HintFilter {
  /** False when every session is ours: then no owner is looked up or stored. */
  active: boolean
  /** `possible`: the hints that may be about our sessions. `certain`: those of them that are. */
  sort(hints: readonly Hint[]): Promise<{ possible: Hint[]; certain: Hint[] }>
}

export function createHintFilter(store: Pick<Store, 'resources'>, scope: Scope | null): HintFilter {
  return {
    active: scope !== null,
    async sort(hints) {
      const owners = await store.resources.owners(hints.flatMap(({ sessionId }) => sessionId ?? []))
      const ownerOf = ({ sessionId }: Hint) => owners.get(sessionId ?? '')?.owner
      const possible = hints.filter((hint) => ownerOf(hint) !== 'foreign' && ownerOf(hint) !== 'gone')
      return { possible, certain: possible.filter((hint) => ownerOf(hint) === 'ours') }
    },
  }
}

export interface OwnershipOptions {
  scope: Scope | null
  store: Store
  filter: HintFilter
  bus: Pick<Bus, 'report'>
  commit: (batch: Batch) => Promise<unknown>
  clock: Clock
  log: Log
}

export interface StartedOwnership extends Ownership {
  /**
   * Called before the first read. `active`: owners must be checked. Without a configured scope, this is so while
   * sessions that an earlier scope left out are still to be taken over.
   */
  begin(active: boolean): Promise<void>
}

export function createOwnership(options: OwnershipOptions): StartedOwnership {
  const { scope, store, filter, bus, commit, clock, log } = options
  let remembered = new BoundedMap<string, OwnerRecord['owner']>(REMEMBERED)
  let rememberedSince = clock.steady()
  let held: HeldFrames = { frames: 0, characters: 0 }
  let lookups = 0
  let waiters: (() => void)[] = []

  const isFull = (): boolean => held.frames >= HELD_FRAMES || held.characters >= HELD_CHARACTERS

  const remember = (sessionId: string, owner: OwnerNote['owner']): void => {
    if (owner === 'unknown') remembered.delete(sessionId)
    else remembered.set(sessionId, owner)
  }

  const noteOf = (sessionId: string, owner: OwnerNote['owner']): OwnerNote => ({
    sessionId,
    owner,
    at: clock.now(),
  })

  const lookUp = async (event: TransientEvent): Promise<void> => {
    const { sessionId } = event
    if (sessionId === null) return
    const owner = (await store.resources.owners([sessionId])).get(sessionId)?.owner
    if (owner === undefined) return
    remember(sessionId, owner)
    if (owner === 'ours') bus.report((to) => to.transient?.(event))
  }

  const wait = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const giveUp = (): void => reject(new Error('the connection ended while frames waited for space'))
      if (signal.aborted) return giveUp()
      signal.addEventListener('abort', giveUp, { once: true })
      waiters.push(() => {
        signal.removeEventListener('abort', giveUp)
        resolve()
      })
    })

  const noteHeld = (now: HeldFrames): void => {
    held = now
    if (isFull()) return
    for (const done of waiters) done()
    waiters = []
  }

  const lookAgain = async (): Promise<void> => {
    try {
      noteHeld(await store.resources.heldFrames())
    } catch (error) {
      log.debug({ err: error }, 'scope: the held frames could not be counted')
    }
  }

  const makeRoom = async (signal: AbortSignal): Promise<void> => {
    log.error(
      { ...held },
      'scope: too many frames wait for sessions that cannot be read; the stream is not read until they can',
    )
    // The list covers many sessions at once, also sessions that cannot be read alone.
    await commit({
      hints: [{ sessionId: null, channel: 'stream', at: clock.now(), scope: 'turns', delay: 0 }],
    })
    if (isFull()) await wait(signal)
  }

  return {
    filter,
    async begin(now) {
      filter.active = now
      if (now) held = await store.resources.heldFrames()
    },
    isOurs: (session) => inScope(session, scope),
    noted: async (sessionId) => (await store.resources.owners([sessionId])).get(sessionId) ?? null,
    async sortPage(sessions, latest) {
      if (!filter.active) return [...sessions]
      const ids = sessions.map(({ id }) => id)
      const [owners, known] = await Promise.all([store.resources.owners(ids), store.resources.glance(ids)])
      const notes: OwnerNote[] = []
      const mine = sessions.filter((session) => {
        const { id } = session
        const owner = owners.get(id)?.owner
        const before = known.get(id)
        if (inScope(session, scope)) {
          if (owner === 'foreign' || owner === 'gone')
            notes.push({ ...noteOf(id, 'pending'), adoptedAt: latest })
          return true
        }
        if (owner === 'foreign') return false
        // A read of the session may be under way, or the page may be older than the store: the read decides.
        if (owner === 'ours' && before === undefined) return true
        const isOld = owner === 'ours' && before !== undefined && session.updatedAt < before.updatedAt
        if (!isOld) notes.push(noteOf(id, 'foreign'))
        return false
      })
      if (notes.length > 0) await commit({ owners: notes })
      return mine
    },
    async note(sessionId, owner) {
      await commit({ owners: [noteOf(sessionId, owner)] })
    },
    publishTransient(event) {
      const { sessionId } = event
      const owner = !filter.active || sessionId === null ? 'ours' : remembered.get(sessionId)
      if (owner === 'ours') return bus.report((to) => to.transient?.(event))
      if (owner !== undefined || lookups >= LOOKUPS) return
      lookups++
      lookUp(event)
        .catch((error: unknown) => log.debug({ err: error }, 'scope: a transient event is dropped'))
        .finally(() => lookups--)
    },
    woken() {
      if (!filter.active) return
      if (clock.steady() - rememberedSince > CURRENT) {
        remembered = new BoundedMap(REMEMBERED)
        rememberedSince = clock.steady()
      }
      // The held frames may be of sessions that other replicas read: their reads make room here.
      if (waiters.length > 0) void lookAgain()
    },
    room: (signal) => (filter.active && isFull() ? makeRoom(signal) : null),
    ownersNoted(notes, now) {
      for (const { sessionId, owner } of notes) remember(sessionId, owner)
      noteHeld(now ?? held)
    },
  }
}
