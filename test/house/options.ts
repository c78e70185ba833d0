import type { Node, TSInterfaceDeclaration, TSType, TSTypeAliasDeclaration } from 'oxc-parser'
import { posix } from 'node:path'
import { callablesOf, nameOf, type Count } from './limits.ts'
import type { Source } from './source.ts'

/** A type's fields, and what the type is called: the declaration, or the parameter that spells it out. */
interface Fields {
  readonly name: string
  readonly fields: Set<string>
}

/**
 * `createEngine(options: EngineOptions)`: the fields of `EngineOptions`. An options object is an object type that is the
 * type of a parameter: one that is written there, or an interface or alias below src, with what it extends. `Pick` and
 * `Omit` have the fields that are left. Each member of a union counts alone. A property is a field, also one that holds a
 * function; a method is none, and neither are the members of a class.
 */
export function optionFields(sources: readonly Source[]): Count[] {
  const types = new Types(sources)
  const found = callablesOf(sources).flatMap(({ source, name, params }) =>
    params.flatMap((param, index) => {
      const inner = param.type === 'TSParameterProperty' ? param.parameter : param
      const pattern = inner.type === 'AssignmentPattern' ? inner.left : inner
      const annotation = pattern.type === 'RestElement' ? null : pattern.typeAnnotation
      if (annotation === null || annotation === undefined) return []
      const site = `${source.path} ${name}(${nameOf(pattern) || index})`
      return types.of(annotation.typeAnnotation, source, site)
    }),
  )
  return found.map(({ name, fields }) => ({ name, count: fields.size }))
}

class Types {
  readonly #sources: ReadonlyMap<string, Source>

  constructor(sources: readonly Source[]) {
    this.#sources = new Map(sources.map((source) => [source.path, source]))
  }

  of(type: TSType, source: Source, site: string): Fields[] {
    if (type.type === 'TSTypeLiteral') return [{ name: site, fields: properties(type.members) }]
    if (type.type === 'TSParenthesizedType') return this.of(type.typeAnnotation, source, site)
    if (type.type === 'TSUnionType') return type.types.flatMap((member) => this.of(member, source, site))
    if (type.type === 'TSIntersectionType') {
      const parts = type.types.flatMap((member) => this.of(member, source, site))
      return parts.length === 0 ? [] : [{ name: site, fields: union(parts) }]
    }
    if (type.type !== 'TSTypeReference' || type.typeName.type !== 'Identifier') return []
    return this.#named(type.typeName.name, type.typeArguments?.params ?? [], source, site)
  }

  #named(name: string, [type, keys]: readonly TSType[], source: Source, site: string): Fields[] {
    if (type !== undefined && ['Readonly', 'Partial', 'Required'].includes(name))
      return this.of(type, source, site)
    if (type !== undefined && keys !== undefined && ['Pick', 'Omit'].includes(name)) {
      const chosen = new Set(literals(keys))
      if (name === 'Pick') return [{ name: site, fields: chosen }]
      return this.of(type, source, site).map(({ fields }) => ({
        name: site,
        fields: new Set([...fields].filter((field) => !chosen.has(field))),
      }))
    }
    const found = this.#declaration(name, source)
    if (found === null) return []
    const { declaration, within } = found
    const own = `${within.path} ${nameOf(declaration.id)}`
    if (declaration.type === 'TSTypeAliasDeclaration') return this.of(declaration.typeAnnotation, within, own)
    const above = declaration.extends.flatMap(({ expression, typeArguments }) =>
      this.#named(nameOf(expression), typeArguments?.params ?? [], within, own),
    )
    return [
      { name: own, fields: union([...above, { name: own, fields: properties(declaration.body.body) }]) },
    ]
  }

  /** Where an interface or alias is declared, looked up through imports and re-exports. */
  #declaration(
    name: string,
    source: Source,
  ): { declaration: TSInterfaceDeclaration | TSTypeAliasDeclaration; within: Source } | null {
    for (const statement of source.program.body) {
      const declaration = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement
      if (declaration?.type === 'TSInterfaceDeclaration' || declaration?.type === 'TSTypeAliasDeclaration') {
        if (declaration.id.name === name) return { declaration, within: source }
      }
      const specifiers = 'specifiers' in statement ? statement.specifiers : []
      for (const specifier of specifiers) {
        if (!('source' in statement) || statement.source === null) continue
        const [here, there] = names(specifier)
        const target = this.#sources.get(posix.join(posix.dirname(source.path), statement.source.value))
        if (here === name && target !== undefined) return this.#declaration(there, target)
      }
    }
    return null
  }
}

/** What a specifier is called here and there. */
function names(specifier: Node): [string, string] {
  if (specifier.type === 'ImportSpecifier') return [nameOf(specifier.local), nameOf(specifier.imported)]
  if (specifier.type === 'ExportSpecifier') return [nameOf(specifier.exported), nameOf(specifier.local)]
  return ['', '']
}

function properties(members: readonly Node[]): Set<string> {
  return new Set(
    members.flatMap((member) => (member.type === 'TSPropertySignature' ? nameOf(member.key) : [])),
  )
}

function union(parts: readonly Fields[]): Set<string> {
  return new Set(parts.flatMap(({ fields }) => [...fields]))
}

/** `'a' | 'b'`. */
function literals(type: TSType): string[] {
  if (type.type === 'TSUnionType') return type.types.flatMap(literals)
  return type.type === 'TSLiteralType' && type.literal.type === 'Literal' ? [String(type.literal.value)] : []
}
