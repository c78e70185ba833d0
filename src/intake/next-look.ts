import type { DirtySession, KnownTurn, Reading } from '../core/store.ts'
import type { Difference } from './diff.ts'
import type { ItemsRead } from './items.ts'

/** A session that is not at rest is looked at again though nobody hinted, milliseconds. */
const SAFETY_LOOK = 300_000
/** Artifacts are polled sooner at first: most settle within a second or two. Milliseconds. */
const ARTIFACTS = { base: 400, max: 300_000 }

/** The hint is done with, unless the session is to be looked at again by itself. `items`: what was read of them. */
export function hintAfter(
  { generation }: DirtySession,
  { turns, reading }: Pick<Difference, 'turns' | 'reading'>,
  steady: number,
  items: ItemsRead = 'all',
): Reading['hint'] {
  const collecting = turns.filter((turn) => turn.final && !turn.settled)
  return {
    generation,
    nextLook: items === 'more' ? steady : nextLookAt(collecting, reading.atRest && items === 'all', steady),
    scope: collecting.length > 0 ? 'artifacts' : 'session',
  }
}

function nextLookAt(collecting: readonly KnownTurn[], atRest: boolean, steady: number): number | null {
  if (collecting.length === 0) return atRest ? null : steady + SAFETY_LOOK
  // Twice as long as we have waited already, so that the readings thin out.
  const youngest = Math.min(...collecting.map(({ finalReadAt }) => steady - (finalReadAt ?? steady)))
  return steady + Math.min(ARTIFACTS.max, Math.max(ARTIFACTS.base, youngest))
}
