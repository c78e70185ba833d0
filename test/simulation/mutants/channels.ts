import { mutant, type Mutant } from './mutant.ts'

/** Bugs in stream, webhooks and polling. */
export const CHANNELS: readonly Mutant[] = [
  mutant(
    'acknowledge first',
    'sidecar/source/webhook.ts',
    '    if (batch.push(delivery) === 1)',
    "    if (readable) answer({ status: 200, outcome: 'accepted' })\n    if (batch.push(delivery) === 1)",
  ),
  mutant(
    'webhook hints are dropped',
    'sidecar/source/webhook.ts',
    'await options.storeHints(deliveries.map(({ hint }) => hint))',
    'await Promise.resolve()',
  ),
  mutant(
    'a stop frame ends the stream for good',
    'sidecar/source/stream.ts',
    'return { reason: how, error: null, wait }',
    'return { reason: how, error: null, wait: 1e9 }',
  ),
  mutant(
    'after each stopped replay the slot is asked for at once',
    'protocol/slot.ts',
    'return this.#scarce ? this.#left(now) : 0',
    'return this.#scarce ? this.#left(now) * 0 : 0',
  ),
  mutant(
    'a slot is taken for free before it is',
    'protocol/slot.ts',
    'export const SLOT_FREED = 5000',
    'export const SLOT_FREED = 4000',
  ),
  mutant(
    'half-open connections live for ever',
    'protocol/connection.ts',
    'if (this.#clock.steady() - this.#waitsSince < SILENCE) {',
    'if (this.#clock.steady() - this.#waitsSince >= 0) {',
  ),
  mutant(
    'after a failed write the rest of the batch is written',
    'sidecar/source/batch.ts',
    'if (!this.failed) await this.#write()',
    'await this.#write()',
  ),
  mutant(
    'the stream starts at live frames after a crash',
    'sidecar/source/cursor.ts',
    'if (saved !== null) return saved\n',
    'if (saved !== null) return null\n',
  ),
  mutant(
    'an inactive subscription is left',
    'sidecar/source/subscription.ts',
    'active && known.get(id)?.retiredAt === null',
    'active || known.get(id)?.retiredAt === null',
  ),
  mutant(
    'a webhook that could not be stored is a duplicate',
    'sidecar/source/webhook.ts',
    'if (first !== undefined) return void (first.copies ??= []).push(answer)',
    "if (first !== undefined) return answer(answered(200, 'duplicate'))",
  ),
  mutant(
    'the secret of a subscription is not stored',
    'sidecar/source/subscription.ts',
    'await store.settings.saveSubscription(record)\n    keep',
    'keep',
  ),
]
