/** One change of a source that could be a mistake. */
export interface Mutant {
  /** From 1. */
  line: number
  from: string
  to: string
  /** The whole source with the change in it. */
  text: string
}

/**
 * What cannot be changed: comments, and what stands for types alone, unions of strings and arguments of `Pick` and the
 * like included. Strings and patterns are kept out of the code below.
 */
const APART =
  /\/\*[^]*?\*\/|\/\/.*$|^import [^]*?from '.*'$|^(?:export )?(?:interface|type) [^]*?(?=\n\n|$(?![^]))|(?:Pick|Omit|Extract|Exclude)<[^>]*>|'[^'\n]*'(?: \| '[^'\n]*')+|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|\/(?![*/ ])(?:\\.|\[(?:\\.|[^\]\n])*\]|[^/\\\n[])+\/[a-z]*/gm

const CHANGES: readonly (readonly [RegExp, (match: string) => string])[] = [
  [/===/g, () => '!=='],
  [/!==/g, () => '==='],
  [/ (<|>) (?=[\w(-])/g, (match) => `${match.trimEnd()}= `],
  [/ (<=|>=) /g, (match) => match.replace('=', '')],
  [/ && /g, () => ' || '],
  [/ \|\| /g, () => ' && '],
  [/ \+ /g, () => ' - '],
  [/ - /g, () => ' + '],
  [/ \* /g, () => ' / '],
  [/(?<=[(\s])!(?=[\w(])/g, () => ''],
  [/\btrue\b/g, () => 'false'],
  [/\bfalse\b/g, () => 'true'],
  [/(?<![\w.#])\d[\d_]*(?![\w.])/g, (match) => String(Number(match.replaceAll('_', '')) + 1)],
  // A statement that is a call or an assignment, left out.
  [/(?<=\n) +(?:[\w.#]+\([^\n]*\)|[\w.#]+ [+?&|-]*= [^\n{[(]*[^\n{[(,])(?=\n)/g, () => ''],
]

/** Every single change of `source`, in its order. */
export function mutantsOf(source: string): Mutant[] {
  const mutants: Mutant[] = []
  const add = (at: number, from: string, to: string): void => {
    const line = source.slice(0, at + from.length - from.trimStart().length).split('\n').length
    mutants.push({
      line,
      from: from.trim(),
      to: to.trim(),
      text: source.slice(0, at) + to + source.slice(at + from.length),
    })
  }
  const code = source.replaceAll(APART, (part, ...rest) => {
    const at = rest.findLast((value): value is number => typeof value === 'number') ?? 0
    if (/^'(?:\\.|[^'\\])+'$/.test(part)) add(at, part, "''")
    return part.replaceAll(/[^\n]/g, '_')
  })
  for (const [pattern, change] of CHANGES)
    for (const { 0: match, index } of code.matchAll(pattern)) {
      const from = source.slice(index, index + match.length)
      add(index, from, change(match))
    }
  return mutants.sort((a, b) => a.line - b.line)
}
