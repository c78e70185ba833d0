import { readDuration } from './duration.ts'
import {
  problemsOf,
  type Counted,
  type FailingOperation,
  type FaultSettings,
  type Flag,
} from './fault-settings.ts'
import { invalid } from './refusal.ts'

export { faultsSchema, type FaultSettings } from './fault-settings.ts'

/** The faults in force. */
export class Faults {
  #settings: FaultSettings = {}
  readonly #listeners = new Set<(settings: FaultSettings) => void>()
  #operationNamed: (name: string) => string | undefined = () => undefined

  /** `named` finds an operation by any of its names, and returns its id. */
  learnOperations(named: (name: string) => string | undefined): void {
    this.#operationNamed = named
  }

  get(): FaultSettings {
    return structuredClone(this.#settings)
  }

  /**
   * @throws {Refusal} 400 that lists every violation of the schema in `settings`.
   */
  set(settings: unknown): void {
    const wrong = problemsOf(settings, (name) => this.#operationNamed(name) !== undefined)
    if (wrong.length > 0) throw invalid(wrong.join('; '))
    const { drop_streams: drop, ...kept } = structuredClone(settings) as FaultSettings
    this.#settings = kept
    for (const listener of this.#listeners)
      listener({ ...kept, ...(drop === undefined ? {} : { drop_streams: drop }) })
  }

  /** Calls `listener` with every new setting. */
  onChange(listener: (settings: FaultSettings) => void): void {
    this.#listeners.add(listener)
  }

  on(name: Flag): boolean {
    return this.#settings[name] === true
  }

  /** True while the counted fault lasts; counts it down by one. */
  use(name: Counted): boolean {
    const left = this.#settings[name] ?? 0
    if (left > 0) this.#settings = { ...this.#settings, [name]: left - 1 }
    return left > 0
  }

  /** The status that a request to this operation fails with, if it does. */
  failureOf(operationId: string): number | undefined {
    const struck = this.#strike(operationId, ({ lose_reply }) => lose_reply !== true)
    return struck === undefined ? undefined : (struck.status ?? 500)
  }

  losesReplyOf(operationId: string): boolean {
    return this.#strike(operationId, ({ lose_reply }) => lose_reply === true) !== undefined
  }

  get retryAfter(): string {
    return String(this.#settings.retry_after ?? 1)
  }

  get unreachableMcp(): readonly string[] {
    return this.#settings.unreachable_mcp ?? []
  }

  get webhookCopies(): number {
    return this.#settings.duplicate_webhooks ?? 0
  }

  get webhookDelayMs(): number {
    return readDuration(this.#settings.delay_webhooks ?? '0s') ?? 0
  }

  get clockSkewMs(): number {
    return this.#settings.clock_skew_ms ?? 0
  }

  /** Bytes a second of each stream; undefined: no limit. */
  get streamRate(): number | undefined {
    return this.#settings.slow_streams
  }

  get streamSlots(): number | undefined {
    return this.#settings.stream_slots
  }

  get replayWindow(): number | undefined {
    return this.#settings.replay_window
  }

  #strike(operationId: string, kind: (entry: FailingOperation) => boolean): FailingOperation | undefined {
    const struck = this.#settings.fail_operations?.find(
      (entry) =>
        kind(entry) &&
        (entry.operation === undefined || this.#operationNamed(entry.operation) === operationId) &&
        (entry.times ?? 1) > 0 &&
        Math.random() < (entry.probability ?? 1),
    )
    if (struck?.times !== undefined) struck.times -= 1
    return struck
  }
}
