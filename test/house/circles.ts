import type { Source } from './source.ts'

type Graph = ReadonlyMap<string, ReadonlySet<string>>

/** Files that import one another, directly or over others. */
export function circlesOfFiles(sources: readonly Source[]): string[][] {
  return circles(new Map(sources.map(({ path, imports }) => [path, new Set(imports)])))
}

/**
 * What lies in one folder and imports one another: files, and folders with all that is below them. `a/x/1.ts` imports
 * `a/y/2.ts`, and `a/y/3.ts` imports `a/x/4.ts`: no two files form a circle, but the folders `a/x` and `a/y` do.
 */
export function circlesOfFolders(sources: readonly Source[]): string[][] {
  const folders = new Map<string, Map<string, Set<string>>>()
  for (const { path, imports } of sources) {
    for (const target of imports) {
      const [folder, from, to] = part(path, target)
      const graph = folders.get(folder) ?? new Map<string, Set<string>>()
      folders.set(folder, graph.set(from, (graph.get(from) ?? new Set()).add(to)))
    }
  }
  return [...folders.values()].flatMap(circles)
}

/** The folder where two paths part, and what of it each of them lies in. */
function part(one: string, other: string): [folder: string, one: string, other: string] {
  const [left, right] = [one.split('/'), other.split('/')]
  const same = left.findIndex((name, index) => name !== right[index])
  const at = same === -1 ? left.length - 1 : same
  const upTo = (names: readonly string[]): string => names.slice(0, at + 1).join('/')
  return [left.slice(0, at).join('/'), upTo(left), upTo(right)]
}

/** Strongly connected components of more than one node, and nodes that import themselves, by Tarjan's algorithm. */
function circles(graph: Graph): string[][] {
  const order = new Map<string, number>()
  const stack: string[] = []
  const found: string[][] = []
  const visit = (node: string): number => {
    const index = order.size
    order.set(node, index)
    stack.push(node)
    let low = index
    for (const next of graph.get(node) ?? []) {
      if (!order.has(next)) low = Math.min(low, visit(next))
      else if (stack.includes(next)) low = Math.min(low, order.get(next) ?? index)
    }
    if (low === index) {
      const members = stack.splice(stack.indexOf(node))
      if (members.length > 1 || graph.get(node)?.has(node)) found.push(members.toSorted())
    }
    return low
  }
  for (const node of graph.keys()) if (!order.has(node)) visit(node)
  return found
}
