import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type Document,
  type Node,
} from 'yaml'
import { messageOf } from '../../std/errors.ts'
import type { Fault, Path } from './fault.ts'

/**
 * How many values the aliases (`*name`) of one file may repeat. A file that repeats more is an attack on our memory,
 * not a configuration.
 */
const MAX_ALIASES = 10_000

export interface Place {
  line: number
  column: number
}

/** A parsed file with the position of each value. */
export interface ConfigDocument {
  /** The parsed value; undefined when the file has faults. */
  value: unknown
  faults: Fault[]
  /** The position of the value at `path` (or its key), or of its nearest ancestor when it is missing. */
  place(path: Path, part: 'key' | 'value'): Place
}

/** Parses YAML 1.2, which includes JSON. Never throws: errors are among the faults. */
export function parseConfigText(file: string, text: string): ConfigDocument {
  const lines = new LineCounter()
  const faults: Fault[] = []
  const start = { line: 1, column: 1 }
  const at = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  const blame = (place: Place, message: string): void => {
    faults.push({ file, ...place, path: '', message })
  }
  const broken = (): ConfigDocument => ({ value: undefined, faults, place: () => start })

  let document: Document.Parsed
  let value: unknown
  try {
    document = parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      merge: true,
      logLevel: 'error',
    })
    for (const fault of [...document.errors, ...document.warnings]) blame(at(fault.pos[0]), yamlFault(fault))
    if (faults.length > 0) return broken()
    visit(document, {
      Alias(_key, alias) {
        if (alias.resolve(document) === undefined) {
          blame(at(alias.range?.[0] ?? 0), `there is no anchor &${alias.source} before this alias`)
        }
      },
    })
    if (faults.length > 0) return broken()
    value = document.toJS({ maxAliasCount: MAX_ALIASES })
  } catch (error) {
    const excessive = error instanceof ReferenceError && error.message.startsWith('Excessive alias count')
    blame(
      start,
      excessive
        ? `aliases of anchors would repeat more than ${MAX_ALIASES} values`
        : error instanceof RangeError
          ? 'nested too deeply'
          : messageOf(error),
    )
    return broken()
  }
  return {
    value,
    faults,
    place(path, part) {
      const offset = offsetOf(document, path, part)
      return offset === null ? start : at(offset)
    },
  }
}

function yamlFault(fault: { code: string; message: string }): string {
  if (fault.code === 'DUPLICATE_KEY') return 'this key is given twice'
  if (fault.code === 'MULTIPLE_DOCS') return 'a second document begins here, and only one is expected'
  if (fault.message.startsWith('Maximum call stack')) return 'nested too deeply'
  return `not valid YAML: ${fault.message}`
}

function offsetOf(document: Document.Parsed, path: Path, part: 'key' | 'value'): number | null {
  let node: Node | null = document.contents
  let offset = node?.range?.[0] ?? null
  for (const [depth, step] of path.entries()) {
    const container: unknown = isAlias(node) ? node.resolve(document) : node
    const last = depth === path.length - 1
    if (isMap(container)) {
      const pair = container.items.find((item) => nameOf(item.key) === String(step))
      if (pair === undefined) return offset
      const key = pair.key as Node
      node = pair.value as Node | null
      offset = (last && part === 'key' ? key : (node ?? key)).range?.[0] ?? offset
      // The position of an ancestor is the position of its key: its value may begin lines below.
      if (!last || (part === 'value' && !isScalar(node) && !isAlias(node))) offset = key.range?.[0] ?? offset
    } else if (isSeq(container)) {
      const item = container.items[Number(step)] as Node | undefined
      if (item === undefined) return offset
      node = item
      offset = node.range?.[0] ?? offset
    } else {
      return offset
    }
  }
  return offset
}

function nameOf(key: unknown): string | null {
  return isScalar(key) ? String(key.value) : null
}
