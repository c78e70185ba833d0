import catalogue from './catalogue.json' with { type: 'json' }

/** One rule of the interface (`catalogue.json` holds them all, in the order of the rule list). */
export interface Rule {
  readonly id: string
  readonly text: string
  /** True: the interface leaves the detail open, so a deployment can only be described, and cannot be wrong. */
  readonly open: boolean
}

const open = new Set(catalogue.open)

/** Every rule, in the order of the rule list. */
export const RULES: readonly Rule[] = Object.entries(catalogue.rules).map(([id, text]) => ({
  id,
  text,
  open: open.has(id),
}))

const known = new Set(RULES.map(({ id }) => id))

/**
 * Expands `SES-01..03 LIM-09` to ids.
 * @throws {Error} when one of them is not a rule.
 */
export function idsOf(text: string): string[] {
  return text
    .split(/\s+/)
    .filter((word) => word !== '')
    .flatMap((word) => {
      const range = /^([A-Z]{3})-(\d+)\.\.(\d+)$/.exec(word)
      const ids = range === null ? [word] : between(range[1] ?? '', Number(range[2]), Number(range[3]))
      const stray = ids.find((id) => !known.has(id))
      if (stray !== undefined) throw new Error(`${stray} is not a rule`)
      return ids
    })
}

function between(prefix: string, first: number, last: number): string[] {
  const count = Math.max(0, last - first + 1)
  return Array.from({ length: count }, (_, index) => `${prefix}-${String(first + index).padStart(2, '0')}`)
}

/**
 * The rules of `--only`: ids, ranges and prefixes, separated by commas or spaces. @throws {Error} that names the
 * invalid word.
 */
export function select(text: string): Set<string> {
  const words = text.split(/[\s,]+/).filter((word) => word !== '')
  const chosen = words.flatMap((word) => {
    const below = RULES.filter(({ id }) => id.startsWith(`${word}-`)).map(({ id }) => id)
    return below.length > 0 ? below : idsOf(word)
  })
  if (chosen.length === 0) throw new Error('no rule is named')
  return new Set(chosen)
}
