import { ServiceError } from '../../core/errors.ts'
import type { Service } from '../../core/ports.ts'

/** Refusals in a row after which we ask whether it is the cursor. */
const REFUSALS = 3
/** With these a service says that it cannot place a cursor, and whatever stands before it that it is not there. */
const REFUSED: ReadonlySet<number> = new Set([400, 404, 410])

/** Whether it is the cursor that is refused, or the stream: to let go of a cursor for nothing loses what follows it. */
export interface Doubt {
  /** @returns true when the cursor is refused, and without it the stream opens. */
  grows(cursor: string | null, error: unknown): Promise<boolean>
  dispel(): void
}

export function createDoubt(service: Service): Doubt {
  let refusals = 0
  /** Without a cursor it opened, after so many refusals with it. */
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
      // What stood in the way may have gone between the two: with the cursor it is tried once more.
      if (opens) return true
      if (++refusals >= REFUSALS) opens = await opensWithout()
      return false
    },
    dispel,
  }
}
