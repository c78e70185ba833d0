import { readFileSync } from 'node:fs'
import { isAlias, isMap, isSeq, LineCounter, parseDocument, type Document } from 'yaml'
import { judge, type Fault } from './judge.ts'
import type { Scenario } from './schema.ts'

/** No replies and no sessions: each line of a message is a step (the line language). */
export const DEFAULT_SCENARIO: Scenario = { name: 'default' }

/**
 * Reads a scenario file (YAML or JSON).
 * @throws {Error} with every fault of the file, one to a line, each with the line that it is on.
 */
export function loadScenario(file: string): Scenario {
  const lines = new LineCounter()
  const document = parseDocument(textOf(file), {
    lineCounter: lines,
    prettyErrors: false,
    // Otherwise a map as a key, such as `{{last}}` without quotes, causes a warning on stderr.
    logLevel: 'error',
  })
  const lineAt = (offset: number): number => lines.linePos(offset).line
  const broken = document.errors.map(({ pos, message }) => ({ line: lineAt(pos[0]), message }))
  if (broken.length > 0) throw faulty(file, broken)
  const content = contentOf(file, document)
  const faults = judge(content).map((fault) => ({
    line: lineAt(offsetOf(document, fault)),
    message: `${fault.path.length === 0 ? '' : `${renderPath(fault.path)}: `}${fault.message}`,
  }))
  if (faults.length > 0) throw faulty(file, faults)
  return content as Scenario
}

/**
 * @throws {Error} with every fault of a scenario that a program built.
 */
export function checkScenario(content: Scenario): Scenario {
  const faults = judge(content)
  if (faults.length === 0) return content
  throw new Error(faults.map(({ path, message }) => `scenario ${renderPath(path)}: ${message}`).join('\n'))
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Error(`${file}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}

/** `toJS` throws if the file has more aliases than the parser accepts. */
function contentOf(file: string, document: Document): unknown {
  try {
    return document.toJS()
  } catch (error) {
    throw new Error(`${file}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}

function faulty(file: string, faults: readonly { line: number; message: string }[]): Error {
  const sorted = faults.toSorted((a, b) => a.line - b.line)
  return new Error(sorted.map(({ line, message }) => `${file}:${line}: ${message}`).join('\n'))
}

/** `replies[0].steps[2]` */
function renderPath(path: Fault['path']): string {
  return path
    .map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`))
    .join('')
}

/** The position of the faulty value or its key, or of its nearest ancestor if it is missing. */
function offsetOf(document: Document, { path, atKey }: Fault): number {
  let node: unknown = document.contents
  let offset = startOf(node) ?? 0
  for (const [depth, step] of path.entries()) {
    const whole = isAlias(node) ? node.resolve(document) : node
    const pair = isMap(whole) ? whole.items.find(({ key }) => String(key) === String(step)) : undefined
    node = pair?.value ?? (isSeq(whole) ? whole.items[Number(step)] : undefined)
    const isLast = depth === path.length - 1
    offset = startOf(isLast && atKey ? pair?.key : node) ?? startOf(pair?.key) ?? offset
  }
  return offset
}

function startOf(node: unknown): number | undefined {
  if (typeof node !== 'object' || node === null || !('range' in node)) return undefined
  const { range } = node
  return Array.isArray(range) && typeof range[0] === 'number' ? range[0] : undefined
}
