import { idsOf } from './catalogue.ts'
import type { Subject, Trial } from './trial.ts'

/** What a check asks for before it may run. */
interface Needs {
  /** It makes things on the deployment, and takes them away again. */
  readonly write: boolean
  /** Scopes that the token must hold. */
  readonly scopes: readonly string[]
}

/** A look at one behaviour, which speaks of all the rules in `ids`. */
export interface Check extends Subject {
  readonly needs: Needs
  run(trial: Trial): Promise<void>
  /** It mostly waits, and so runs beside all others from the start. */
  readonly aside?: boolean
}

type Run = (trial: Trial) => Promise<void>

const READS = ['sessions:read']
const DRIVES = ['sessions:read', 'sessions:write']

/** A check that changes nothing. */
export function reading(title: string, ids: string, run: Run, scopes: readonly string[] = READS): Check {
  return { title, ids: idsOf(ids), needs: { write: false, scopes }, run }
}

/** A check that makes things, and so runs with `--write` alone. */
export function writing(title: string, ids: string, run: Run, scopes: readonly string[] = []): Check {
  return { title, ids: idsOf(ids), needs: { write: true, scopes: [...DRIVES, ...scopes] }, run }
}
