import { joinScopes, type HintScope } from '../../core/hint.ts'
import type { HintedSession, Reading } from '../../core/store.ts'
import type { Doubt } from './expectations.ts'
import type { Difference } from './diff.ts'
import type { ItemsRead } from './items.ts'
import { isCollecting } from './look.ts'

/** A session that is not at rest is looked at again though nobody hinted, milliseconds. */
const SAFETY_LOOK = 300_000
/** What is on its way is looked at sooner at first: most of it is there within a second or two. Milliseconds. */
const SOON = { base: 400, max: 300_000 }

/**
 * The hint is done with, unless the session is to be looked at again by itself. `items`: what was read of them; `doubt`:
 * what is known to be there and did not show.
 */
export function hintAfter(
  { generation }: HintedSession,
  { turns, reading }: Pick<Difference, 'turns' | 'reading'>,
  steady: number,
  { items = 'all', doubt = null }: { items?: ItemsRead | undefined; doubt?: Doubt | null } = {},
): Reading['hint'] {
  const collecting = turns.filter((turn) => isCollecting(turn, steady))
  const looks: { after: number; scope: HintScope }[] = []
  if (items === 'more') looks.push({ after: 0, scope: 'session' })
  if (doubt !== null) looks.push({ after: soonAfter(doubt.since, steady), scope: doubt.scope })
  if (collecting.length > 0) {
    const youngest = Math.max(...collecting.map(({ finalReadAt }) => finalReadAt ?? steady))
    looks.push({ after: soonAfter(youngest, steady), scope: 'artifacts' })
  }
  if (looks.length === 0 && !(reading.atRest && items === 'all'))
    looks.push({ after: SAFETY_LOOK, scope: 'session' })
  const scopes = looks.map(({ scope }) => scope)
  return {
    generation,
    lookAfter: looks.length === 0 ? null : Math.min(...looks.map(({ after }) => after)),
    scope: scopes.length === 0 ? 'session' : scopes.reduce(joinScopes),
  }
}

/** Twice as long as we have waited already, so that the readings thin out. */
function soonAfter(since: number, steady: number): number {
  return Math.min(SOON.max, Math.max(SOON.base, steady - since))
}
