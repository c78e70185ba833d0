import type { Node, ParamPattern } from 'oxc-parser'
import { visitorKeys } from 'oxc-parser'
import type { Source } from './source.ts'

/** How many of one kind a file, a function or a type has. */
export interface Count {
  /** `core/fact.ts`, `sidecar/deliver/targets/http.ts createHttpTarget.send`. */
  readonly name: string
  readonly count: number
}

/** A function, a method, a constructor, an arrow, or the signature of one in a type. */
export interface Callable {
  readonly source: Source
  readonly name: string
  readonly params: readonly ParamPattern[]
}

/** Values that each file exports. A type costs nothing, `export *` is refused because it hides what it exports. */
export function exportedValues(sources: readonly Source[]): Count[] {
  return sources.map(({ path, program }) => {
    const names = program.body.flatMap((statement) => {
      if (statement.type === 'ExportDefaultDeclaration') return ['default']
      if (statement.type === 'ExportAllDeclaration' && statement.exportKind === 'value') {
        if (statement.exported === null) throw new Error(`${path}: name what export * exports`)
        return [nameOf(statement.exported)]
      }
      if (statement.type !== 'ExportNamedDeclaration' || statement.exportKind === 'type') return []
      const named = statement.specifiers.filter(({ exportKind }) => exportKind !== 'type')
      return [...named.map(({ exported }) => nameOf(exported)), ...declared(statement.declaration)]
    })
    // The signatures of an overloaded function are one value.
    return { name: path, count: new Set(names).size }
  })
}

/** Values that a declaration declares. */
function declared(declaration: Node | null): string[] {
  if (declaration?.type === 'VariableDeclaration')
    return declaration.declarations.flatMap(({ id }) => bound(id))
  const values = ['FunctionDeclaration', 'TSDeclareFunction', 'ClassDeclaration', 'TSEnumDeclaration']
  if (declaration === null || !values.includes(declaration.type)) return []
  return 'id' in declaration && declaration.id !== null ? [nameOf(declaration.id)] : []
}

/** The names that a pattern binds: `{ a, b: [c] }` binds a and c. */
function bound(pattern: Node | null): string[] {
  if (pattern === null) return []
  if (pattern.type === 'ObjectPattern')
    return pattern.properties.flatMap((each) => bound(each.type === 'RestElement' ? each : each.value))
  if (pattern.type === 'ArrayPattern') return pattern.elements.flatMap(bound)
  if (pattern.type === 'AssignmentPattern') return bound(pattern.left)
  if (pattern.type === 'RestElement') return bound(pattern.argument)
  return [nameOf(pattern)]
}

/** Parameters of each function. `this` is none. */
export function parameters(sources: readonly Source[]): Count[] {
  return callablesOf(sources).map(({ source, name, params }) => ({
    name: `${source.path} ${name}`,
    count: params.filter((param) => nameOf(param) !== 'this').length,
  }))
}

/** Every callable, named by what it stands in: `Engine.start`, `createTarget.post`; an unnamed one by its surroundings. */
export function callablesOf(sources: readonly Source[]): Callable[] {
  return sources.flatMap((source) => {
    const found: Callable[] = []
    const visit = (node: Node, names: readonly string[]): void => {
      const within = [...names, ...ownName(node)]
      const params = CALLABLE.has(node.type) && 'params' in node ? (node.params as ParamPattern[]) : null
      if (params !== null) found.push({ source, name: within.join('.') || 'at the top', params })
      for (const child of childrenOf(node)) visit(child, within)
    }
    visit(source.program, [])
    return found
  })
}

const CALLABLE: ReadonlySet<string> = new Set([
  'ArrowFunctionExpression',
  'FunctionDeclaration',
  'FunctionExpression',
  'TSCallSignatureDeclaration',
  'TSConstructSignatureDeclaration',
  'TSConstructorType',
  'TSDeclareFunction',
  'TSEmptyBodyFunctionExpression',
  'TSFunctionType',
  'TSMethodSignature',
])

function childrenOf(node: Node): Node[] {
  const fields = node as unknown as Record<string, Node | readonly (Node | null)[] | null | undefined>
  return (visitorKeys[node.type] ?? []).flatMap((key) => fields[key] ?? []).filter((child) => child !== null)
}

/** What a node adds to the names of the functions in it. */
function ownName(node: Node): string[] {
  const name = 'id' in node ? node.id : 'key' in node ? node.key : null
  return name !== null && name !== undefined && typeof name === 'object' ? [nameOf(name)].filter(Boolean) : []
}

/** A name as it is written, empty where there is none. */
export function nameOf(node: Node): string {
  if (node.type === 'PrivateIdentifier') return `#${node.name}`
  if ('name' in node && typeof node.name === 'string') return node.name
  return 'value' in node && typeof node.value === 'string' ? node.value : ''
}
