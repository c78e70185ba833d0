import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { blocksOf, ROOT } from '../readme/document.ts'

export interface Snippet {
  /** Document and line, or the file. */
  origin: string
  text: string
}

const TYPESCRIPT = new Set(['ts', 'typescript', 'tsx', 'mts', 'cts'])

/** Every piece of TypeScript that a reader may copy: fenced blocks of all documents, and the examples. Each is a whole module. */
export function snippets(): Snippet[] {
  const exclude = ['**/node_modules', 'dist', '.package']
  const documents = globSync('**/*.md', { cwd: ROOT, exclude })
  const fenced = documents.flatMap((document) =>
    blocksOf(readFileSync(path.join(ROOT, document), 'utf8'))
      .filter(({ language }) => TYPESCRIPT.has(language))
      .map(({ line, text }) => ({ origin: `${document}:${line}`, text })),
  )
  const examples = globSync('config/**/*.ts', { cwd: ROOT, exclude })
  return [
    ...fenced,
    ...examples.map((file) => ({ origin: file, text: readFileSync(path.join(ROOT, file), 'utf8') })),
  ]
}

/**
 * Saves each as a file in `folder`, named after its origin, and a project of them that is compiled with `--strict`.
 * It names no `types`: a new project does not, and TypeScript 7 then loads those that the package asks for.
 * `skipLibCheck` saves half a minute where the declarations of the package are not what is tested.
 */
export function saveProject(
  folder: string,
  modules: readonly Snippet[],
  { skipLibCheck = false }: { skipLibCheck?: boolean } = {},
): void {
  const names = modules.map(({ origin }) => `${origin.replaceAll(/[^A-Za-z0-9]+/g, '-')}.ts`)
  mkdirSync(folder, { recursive: true })
  for (const [index, { text }] of modules.entries())
    writeFileSync(path.join(folder, names[index] ?? ''), text)
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module","private":true}')
  const compilerOptions = {
    strict: true,
    skipLibCheck,
    noEmit: true,
    target: 'esnext',
    module: 'nodenext',
  }
  writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: names }))
}
