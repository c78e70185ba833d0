import type { Scope } from '../../src/core/scope.ts'
import type { Chance } from './chance.ts'
import type { SessionPlan } from './scenario.ts'

/**
 * The owner of a session by the last process's scope. `moved`: it was foreign and became ours, or
 * the reverse, by a PATCH or by another scope in a later life: what of it makes facts depends on
 * when we look.
 */
export type Fate = 'ours' | 'foreign' | 'moved'

/**
 * Whether a fact that was stored at `before` and again at `again` is stored anew. A session that left the scope is forgotten
 * after the retention. When it returns, its state is reported again, under the same ids.
 */
export function isStoredAnew(
  fate: Fate | undefined,
  retention: number | null,
  { before, again }: { before: number; again: number },
): boolean {
  return fate === 'moved' && retention !== null && again - before > retention
}

/** What a session shows of whose it is. */
export interface Belonging {
  fate: Fate
  metadata: Record<string, string>
  createdBy: string
}

export interface Stranger {
  plan: SessionPlan
  first: Belonging
  /** Milliseconds after it was made. */
  patches: { at: number; metadata: Record<string, string> }[]
}

/** A sidecar that shares its organization. */
export interface ScopePlan {
  scope: Scope
  /** The scope of the first life, where it was another. */
  first: Scope | null | 'same'
  /** When it is stopped and started again, milliseconds after the beginning; null: never. */
  restartAt: number | null
  strangers: Stranger[]
}

const MINE = { ticket: '7', app: 'ours' }
const THEIRS = { ticket: '7', app: 'theirs' }
const [OUR_TOKEN, THEIR_TOKEN] = ['tok_ours', 'tok_theirs']

export const OURS: Belonging = { fate: 'ours', metadata: MINE, createdBy: OUR_TOKEN }

const BY_METADATA: Scope = { metadata: { app: 'ours' }, createdByToken: [] }
const BY_TOKEN: Scope = { metadata: {}, createdByToken: ['tok_other', OUR_TOKEN] }
const BY_BOTH: Scope = { metadata: { app: 'ours', ticket: '7' }, createdByToken: [OUR_TOKEN] }

/** In one seed of so many. */
const SHARED = 5

export function drawScope(
  chance: Chance,
  faultsUntil: number,
  drawSession: (chance: Chance) => SessionPlan,
): ScopePlan | null {
  if (!chance.is(1 / SHARED)) return null
  const scope = chance.pick([BY_METADATA, BY_TOKEN, BY_BOTH])
  const first = chance.is(0.15) ? chance.pick([null, BY_TOKEN, BY_METADATA]) : 'same'
  const rescoped = first !== 'same' && first !== scope
  return {
    scope,
    first: rescoped ? first : 'same',
    restartAt: rescoped ? chance.int(1000, faultsUntil) : null,
    strangers: Array.from({ length: chance.pick([1, 1, 2, 3]) }, () =>
      drawStranger(chance, scope, rescoped, drawSession),
    ),
  }
}

function drawStranger(
  chance: Chance,
  scope: Scope,
  rescoped: boolean,
  drawSession: (chance: Chance) => SessionPlan,
): Stranger {
  const plan = drawSession(chance)
  const createdBy = scope.createdByToken.length === 0 || chance.is(0.3) ? OUR_TOKEN : THEIR_TOKEN
  const wrongToken = scope.createdByToken.length > 0 && createdBy === THEIR_TOKEN
  const metadata = wrongToken ? chance.pick([MINE, THEIRS]) : chance.pick([THEIRS, { ticket: '7' }])
  const byMetadata = Object.keys(scope.metadata).length > 0
  // By a token alone, whose session it is never changes.
  const isForeign = wrongToken || byMetadata
  const moves = byMetadata && !wrongToken && chance.is(0.4)
  const moments = Array.from({ length: moves ? chance.pick([1, 1, 2]) : 0 }, () => chance.int(0, 8000))
  return {
    plan,
    first: { fate: moves || rescoped ? 'moved' : isForeign ? 'foreign' : 'ours', metadata, createdBy },
    patches: moments
      .toSorted((a, b) => a - b)
      .map((at, index) => ({ at, metadata: index % 2 === 0 ? MINE : metadata })),
  }
}

/** The scope of one life. */
export function scopeOf(plan: ScopePlan | null | undefined, life: number): Scope | null {
  if (plan === null || plan === undefined) return null
  return life === 1 && plan.first !== 'same' ? plan.first : plan.scope
}
