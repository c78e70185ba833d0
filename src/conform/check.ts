import { idsOf } from './catalogue.ts'
import type { Subject, Trial } from './trial.ts'

/** The preconditions of a check. */
interface Needs {
  /** It creates resources on the deployment, and removes them. */
  readonly write: boolean
  /** Scopes that the token must hold. */
  readonly scopes: readonly string[]
}

/** A check of one behaviour, which covers all the rules in `ids`. */
export interface Check extends Subject {
  readonly needs: Needs
  run(trial: Trial): Promise<void>
  /** The check mostly waits, so it is started first and runs beside all others. */
  readonly aside?: boolean
}

type Run = (trial: Trial) => Promise<void>

const READS = ['sessions:read']
const DRIVES = ['sessions:read', 'sessions:write']

/** A check that changes nothing. */
export function reading(title: string, ids: string, run: Run, scopes: readonly string[] = READS): Check {
  return { title, ids: idsOf(ids), needs: { write: false, scopes }, run }
}

/** A check that creates resources, so it runs only with `--write`. */
export function writing(title: string, ids: string, run: Run, scopes: readonly string[] = []): Check {
  return { title, ids: idsOf(ids), needs: { write: true, scopes: [...DRIVES, ...scopes] }, run }
}
