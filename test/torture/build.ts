import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Build } from './world.ts'

const ROOT = new URL('../../', import.meta.url)

/** What runs as the program under test. `build` makes it first. */
export function programOf(kind: 'build' | 'built' | 'source'): Build {
  if (kind === 'build') execFileSync('npm', ['run', '--silent', 'build'], { cwd: ROOT, stdio: 'inherit' })
  const [folder, ending] = kind === 'source' ? ['src', 'ts'] : ['dist', 'js']
  const file = (name: string): string => fileURLToPath(new URL(`${folder}/${name}.${ending}`, ROOT))
  return { main: file('main'), library: file('index') }
}
