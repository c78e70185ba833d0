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

/** Pages of one session's items in one read; the next read follows at once and continues. */
const PAGES = 20

/** Reads the transcript without the stream: the items after the last one, in order. */
export interface Items {
  /**
   * `since`, `startedAt`: service clock; items older than `since` make no facts. `failures`: reads of the session that
   * failed in a row. After a few of them, items that cannot be read do not delay the state facts any longer.
   */
  read(sessionId: string, since: number, startedAt: number, failures: number): Promise<ItemsRead>
}

/**
 * Checkpoint (service clock): since when items, not the stream, are the source of the transcript; empty: not known yet.
 */
const ITEMS_SINCE = 'items_since'

/** Makes items the source of the transcript. The service's clock is not known yet: the first read stores the time. */
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

  /** Before this time, the stream was the source, also for sessions whose items were read before. */
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
      // Another read stored more items meanwhile. This one may have waited longer than the ids of its facts are stored,
      // so it starts again from there.
      if (reached !== after) {
        after = reached
        continue
      }
      // A page may have no readable item: it is skipped, so that the items after it are read.
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
