import { isParticular } from '../../core/errors.ts'
import { messageOf } from '../../std/errors.ts'
import { itemFactId, transcriptType, type Fact } from '../../core/fact.ts'
import { writeJson } from '../../std/json.ts'
import type { Clock, Log } from '../../std/ports.ts'
import type { Service } from '../../core/ports.ts'
import type { Item } from '../../core/resource.ts'
import type { Store } from '../../core/store.ts'
import type { Intake } from './commit.ts'
import type { ItemsRead } from './schedule.ts'
import { PAGE, PATIENCE } from './snapshot.ts'

/** Pages of one session's items in one go; the rest follows with the next reading, at once. */
const PAGES = 20

/** The transcript without the stream: items since the last one, in order. */
export interface Items {
  /**
   * `since`, `startedAt`: service clock; what is older than the former was there before us and makes no facts.
   * `failures`: readings of the session that failed in a row. After a few of them what is said in it holds up no longer what
   * becomes of it.
   */
  read(sessionId: string, since: number, startedAt: number, failures: number): Promise<ItemsRead>
}

/** Service clock: when items became the source of the transcript, after the stream had been; empty: not known yet. */
const ITEMS_SINCE = 'items_since'

/** The transcript comes from items from now on. The service has not told its time yet: the first reading notes it. */
export async function beginItems(store: Pick<Store, 'settings'>): Promise<void> {
  await store.settings.setCheckpoint(ITEMS_SINCE, '')
}

export function createItems(options: {
  service: Service
  store: Store
  intake: Intake
  clock: Clock
  log: Log
}): Items {
  const { service, store, intake, clock, log } = options

  /** Before this the stream told, also of sessions whose items had been read before it. */
  const begun = async (startedAt: number): Promise<number> => {
    const noted = await store.settings.checkpoint(ITEMS_SINCE)
    if (noted !== '') return Number(noted ?? 0)
    await store.settings.setCheckpoint(ITEMS_SINCE, String(startedAt))
    return startedAt
  }

  const readOn = async (sessionId: string, since: number, startedAt: number): Promise<ItemsRead> => {
    const name = `items/${sessionId}`
    let after = await store.settings.checkpoint(name)
    const boundary = Math.max(after === null ? since : 0, await begun(startedAt))
    for (let page = 0; page < PAGES; page++) {
      const { data, hasMore, lastId } = await service.listItems(
        sessionId,
        after === null ? { limit: PAGE, order: 'asc' } : { limit: PAGE, order: 'asc', after },
      )
      const reached = await store.settings.checkpoint(name)
      // Another reading came further while we waited, for longer, maybe, than what it told is kept.
      if (reached !== after) {
        after = reached
        continue
      }
      // Of a whole page nothing may be readable: it was told, and what follows it is not held up.
      const newest = data.at(-1)?.id ?? (hasMore ? lastId : null)
      if (newest === null || newest === after) return 'all'
      await intake.commit({
        facts: data
          .filter((item) => (item.createdAt ?? Infinity) > boundary)
          .map((item) => factOf(item, clock.now())),
        checkpoints: { [name]: newest },
      })
      if (!hasMore) return 'all'
      after = newest
    }
    return 'more'
  }
  return {
    async read(sessionId, since, startedAt, failures) {
      try {
        return await readOn(sessionId, since, startedAt)
      } catch (error) {
        if (failures < PATIENCE || !isParticular(error)) throw error
        log.warn({ sessionId, error: messageOf(error) }, 'reconcile: the items of a session cannot be read')
        return 'none'
      }
    },
  }
}

function factOf(item: Item, at: number): Fact {
  return {
    id: itemFactId(item.sessionId, item.id),
    type: transcriptType(item.event ?? item.type),
    sessionId: item.sessionId,
    turnId: typeof item.raw.turn_id === 'string' ? item.raw.turn_id : null,
    at,
    family: 'transcript',
    seq: null,
    body: writeJson({ payload: item.raw, internal_type: null, seq: null }),
    seen: { poll: at },
    subject: null,
  }
}
