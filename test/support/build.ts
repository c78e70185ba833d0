import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const ROOT = new URL('../../', import.meta.url)

/** The program as files: what is run, and what is imported. */
export interface Build {
  main: string
  library: string
}

/** What runs as the program under test. `build` makes it first. */
export function programOf(kind: 'build' | 'built' | 'source'): Build {
  if (kind === 'build') execFileSync('npm', ['run', '--silent', 'build'], { cwd: ROOT, stdio: 'inherit' })
  const [folder, ending] = kind === 'source' ? ['src', 'ts'] : ['dist', 'js']
  const file = (name: string): string => fileURLToPath(new URL(`${folder}/${name}.${ending}`, ROOT))
  return { main: fileURLToPath(new URL(`${folder}/main.js`, ROOT)), library: file('index') }
}
