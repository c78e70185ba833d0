/**
 * Places at which crashes are aimed. The coverage gate fails when one that is passed is missing here, or one that is here
 * was not crashed. Reading a single turn is not among them: it takes a session with more turns than a page.
 */
export const KNOWN_SITES: readonly string[] = [
  'clock.after',
  'clock.soon',
  'weather',
  'stream chunk',
  'http discover',
  'http health',
  'http stream',
  'http list sessions',
  'http read session',
  'http list turns',
  'http list items',
  'http list artifacts',
  'http answer',
  'http message',
  'http list webhooks',
  'http create webhook',
  'http delete webhook',
  'http tool',
  'http callback',
  'store.commit frames',
  'store.commit hints',
  'store.commit reading',
  'store.commit items',
  'store.commit new calls',
  'store.commit call received',
  'store.commit call running',
  'store.commit call finished',
  'store.commit call answered',
  'store.commit call failed',
  'store.commit call not_delivered',
  'store.commit call note',
  'store.settings.checkpoint',
  'store.settings.setCheckpoint',
  'store.hints.claim',
  'store.hints.retry',
  'store.hints.defer',
  'store.hints.finishSweep',
  'store.hints.nextDue',
  'store.resources.known',
  'store.resources.knownTurns',
  'store.resources.summary',
  'store.resources.glance',
  'store.resources.alive',
  'store.resources.count',
  'store.lanes.claim',
  'store.lanes.read',
  'store.lanes.release',
  'store.lanes.retry',
  'store.lanes.nextDue',
  'store.commit acks',
  'store.calls.claim',
  'store.calls.get',
  'store.calls.nextDue',
  'store.settings.registerHandlers',
  'store.settings.pauseHandler',
  'store.settings.subscriptions',
  'store.settings.saveSubscription',
]

/** Those that only a sidecar with a scope passes. */
export const SCOPE_SITES: readonly string[] = [
  'store.resources.owners',
  'store.resources.strangers',
  'store.resources.heldFrames',
  'store.commit owners',
]

/** Those that only several processes on one store pass. */
export const REPLICA_SITES: readonly string[] = [
  'store.wake',
  'store.shards.renew',
  'store.shards.survey',
  'store.shards.fence',
  'store.shards.take',
  'store.shards.release',
]

/** Those that only housekeeping and an operator pass. */
export const UPKEEP_SITES: readonly string[] = [
  'store.log.missed',
  'store.log.prune',
  'store.operator.retry',
  'store.operator.replay',
]
