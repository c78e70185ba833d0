import type { Secrets } from '../../std/signature.ts'
import { messageOf } from '../../std/errors.ts'
import { ServiceError } from '../../core/errors.ts'
import { pause } from '../../std/pause.ts'
import type { Hint } from '../../core/hint.ts'
import type { Observer } from '../../core/observer.ts'
import type { Clock, Log, Random, Timer } from '../../std/ports.ts'
import type { Service } from '../../core/ports.ts'
import type { ShardTopics } from '../../core/shards.ts'
import type { Store, SubscriptionRecord } from '../../core/store.ts'

/** How long the secret of a subscription that we replaced stays valid: the service retries for about nine hours. */
const RETIRED_KEPT = 12 * 3_600_000
/**
 * If two deployments have the same public_url, each replaces the other's subscription, because it does not have its
 * secret. A process replaces at most REPLACED_MOST subscriptions within REPLACED_WITHIN milliseconds.
 */
const REPLACED_MOST = 2
const REPLACED_WITHIN = 3_600_000
/** The least wait after a check that failed, milliseconds. */
const RETRY = 30_000
/** The secrets are read again at most once in RELOADED milliseconds, and at most AWAITED webhooks wait for that. */
const RELOADED = 1000
const AWAITED = 100

const ANOTHER_URL = 'give each deployment a webhooks.public_url of its own'

export interface SubscriptionKeeper extends Pick<ShardTopics, 'led' | 'woken'> {
  start(): Promise<void>
  stop(): void
  /**
   * Reads the secrets again. false: the read failed. null: nothing is read, because this process is the leader and
   * makes the secrets itself, or because too many webhooks wait already.
   */
  reload(): Promise<boolean> | null
  /** Secrets of our subscriptions, the newest first. */
  readonly secrets: Secrets
}

/**
 * Creates the webhook subscription, and creates it again when it is inactive or was deleted. Its secret is shown once,
 * so it is stored at once; a subscription whose secret we do not have is replaced. The leader does this; other replicas
 * only read the secrets.
 */
export function createSubscriptionKeeper(options: {
  /** `webhooks.public_url`. */
  url: string
  /** Milliseconds between two checks. */
  interval: number
  service: Service
  store: Store
  hint: (hints: readonly Hint[]) => Promise<void>
  observer: Observer
  clock: Clock
  random: Random
  log: Log
}): SubscriptionKeeper {
  const { url, service, store, observer, clock, random, log } = options
  let records: readonly SubscriptionRecord[] = []
  let active = false
  let timer: Timer | null = null
  /** Steady milliseconds: when we replaced active subscriptions of another deployment. */
  let replaced: number[] = []
  let running = false
  let tending = false
  let reload: Promise<boolean> | null = null
  const stopped = new AbortController()
  /** Steady milliseconds. */
  let reloadedAt = -Infinity
  let awaited = 0

  const secrets: Secrets = { current: [] }
  const keep = (all: readonly SubscriptionRecord[]): void => {
    records = all
    secrets.current = all.map(({ secret }) => secret)
  }

  const load = async (): Promise<void> => keep(await store.settings.subscriptions())

  /** @returns false when the store could not be read. */
  const tryToLoad = async (): Promise<boolean> => {
    try {
      await load()
      return true
    } catch (error) {
      log.warn({ err: error }, 'webhooks: the secrets could not be read')
      return false
    }
  }

  const loadAgain = async (): Promise<boolean> => {
    const wait = reloadedAt + RELOADED - clock.steady()
    if (wait > 0) await pause(clock, wait, stopped.signal)
    const done = !stopped.signal.aborted && (await tryToLoad())
    reloadedAt = clock.steady()
    awaited = 0
    reload = null
    return done
  }

  /** `unread`: another process may have changed the records, so they are read first. */
  const tend = async (unread = false): Promise<void> => {
    tending = true
    let wait = options.interval
    try {
      if (unread) await load()
      unread = false
      await check()
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'stopped') return
      wait = Math.max(RETRY, error instanceof ServiceError ? (error.retryAfter ?? 0) : 0)
      log.warn({ error: messageOf(error), wait }, 'webhooks: the subscription could not be checked')
      // If the service is only unreachable, the subscription still exists.
      if (!active || (error instanceof ServiceError && !error.transient)) report(false, messageOf(error))
    }
    if (running) timer = clock.after(wait, () => void tend(unread))
  }

  const check = async (): Promise<void> => {
    if (!service.authorized()) return
    const known = new Map(records.map((record) => [record.id, record]))
    const listed = await service.listWebhooks()
    const ours = listed.filter((subscription) => subscription.url === url)
    const good = ours.find(({ id, active }) => active && known.get(id)?.retiredAt === null)
    const rivals = ours.filter(({ id, active }) => active && !known.has(id))
    if (good === undefined && rivals.length > 0 && !mayReplace()) {
      const ids = rivals.map(({ id }) => id).join(', ')
      report(false, `another deployment subscribes ${url} as well (${ids}): ${ANOTHER_URL}`)
      log.error(
        { url, ids },
        `webhooks: another deployment replaces our subscription again and again; ${ANOTHER_URL}`,
      )
      return
    }
    for (const { id, active } of ours) {
      if (id === good?.id) continue
      log.warn(
        { id, active, known: known.has(id) },
        'webhooks: replacing a subscription that is inactive or whose secret we do not have',
      )
      await service.deleteWebhook(id)
    }
    if (good === undefined) await subscribe()
    for (const { id, ...other } of listed) {
      if (other.url === url || !known.has(id)) continue
      log.warn({ id, url: other.url }, 'webhooks: our subscription of an earlier address is deleted')
      await service.deleteWebhook(id)
    }
    await retire(good?.id ?? records[0]?.id)
    report(true)
  }

  const mayReplace = (): boolean => {
    const now = clock.steady()
    replaced = replaced.filter((at) => now - at < REPLACED_WITHIN)
    if (replaced.length >= REPLACED_MOST) return false
    replaced.push(now)
    return true
  }

  const subscribe = async (): Promise<void> => {
    report(false)
    const { id, secret } = await service.createWebhook(url, random.hex(16))
    if (secret === null) throw new Error('the service showed no secret for the new subscription')
    // No webhook reported what happened without a subscription, so all sessions are read. Stored before the secret: after a
    // crash in between, the next start subscribes and comes here again.
    await options.hint([{ sessionId: null, channel: 'poll', at: clock.now(), scope: 'turns', delay: 0 }])
    const record = { id, url, secret, createdAt: clock.now(), retiredAt: null }
    await store.settings.saveSubscription(record)
    keep([record, ...records])
    log.info({ id, url }, 'webhooks: subscribed')
  }

  const retire = async (current: string | undefined): Promise<void> => {
    for (const record of records) {
      if (record.id === current) continue
      if (record.retiredAt === null)
        await store.settings.saveSubscription({ ...record, retiredAt: clock.now() })
      else if (record.retiredAt < clock.now() - RETIRED_KEPT)
        await store.settings.forgetSubscription(record.id)
    }
    keep(await store.settings.subscriptions())
  }

  const report = (now: boolean, problem?: string): void => {
    active = now
    observer.subscription(now, problem)
  }

  return {
    async start() {
      running = true
      await load()
      if (store.shards.leads && !tending) await tend()
    },
    led() {
      if (running && !tending) void tend(true)
    },
    reload() {
      if (store.shards.leads || ++awaited > AWAITED) return null
      reload ??= loadAgain()
      return reload
    },
    woken({ topics }) {
      if (!store.shards.leads && topics.has('secrets')) void tryToLoad()
    },
    stop() {
      running = false
      timer?.cancel()
      stopped.abort()
    },
    secrets,
  }
}

/**
 * Deletes the subscriptions of earlier runs when webhooks are off, because the service would continue to send. A failure is
 * retried at the next start.
 */
export async function endSubscriptions(
  service: Pick<Service, 'listWebhooks' | 'deleteWebhook'>,
  store: Pick<Store, 'settings'>,
  log: Log,
): Promise<void> {
  try {
    const records = await store.settings.subscriptions()
    if (records.length === 0) return
    const listed = new Set((await service.listWebhooks()).map(({ id }) => id))
    for (const { id, url } of records) {
      if (listed.has(id)) {
        log.warn({ id, url }, 'webhooks: they are turned off, so our subscription is deleted')
        await service.deleteWebhook(id)
      }
      await store.settings.forgetSubscription(id)
    }
  } catch (error) {
    log.warn({ error: messageOf(error) }, 'webhooks: an earlier subscription could not be deleted')
  }
}
