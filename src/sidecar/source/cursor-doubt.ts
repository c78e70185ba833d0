import { ServiceError } from '../../core/errors.ts'
import type { Service } from '../../core/ports.ts'

/** Refusals in a row after which the cursor is tested. */
const REFUSALS = 3
/**
 * A service refuses an unknown cursor with one of these statuses. A proxy in front of a service that is down sends them
 * too.
 */
const REFUSED: ReadonlySet<number> = new Set([400, 404, 410])

/**
 * Finds out whether the service refuses the cursor, or the stream as a whole. A cursor that is dropped without need loses the
 * events after it.
 */
export interface Doubt {
  /** @returns true when the cursor is refused, and the stream opens without it. */
  grows(cursor: string | null, error: unknown): Promise<boolean>
  dispel(): void
}

export function createDoubt(service: Service): Doubt {
  let refusals = 0
  /** The stream opened without a cursor, after REFUSALS refusals with it. */
  let opens = false

  const opensWithout = async (): Promise<boolean> => {
    const connection = new AbortController()
    try {
      await service.openStream(null, connection.signal)
      return true
    } catch {
      return false
    } finally {
      connection.abort()
    }
  }

  const dispel = (): void => {
    refusals = 0
    opens = false
  }

  return {
    async grows(cursor, error) {
      if (cursor === null || !(error instanceof ServiceError) || !REFUSED.has(error.status)) {
        dispel()
        return false
      }
      // The stream opened without the cursor, and is now refused again with it. The second refusal shows that the cause
      // had not just ended between the two requests.
      if (opens) return true
      if (++refusals >= REFUSALS) opens = await opensWithout()
      return false
    },
    dispel,
  }
}
