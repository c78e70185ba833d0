import { spawnSync } from 'node:child_process'
import { documentsOf } from './documents.ts'

/** `kubectl` has kustomize built in, and renders without a cluster. */
export const hasKustomize = spawnSync('kubectl', ['version', '--client']).status === 0
if (!hasKustomize) {
  process.stderr.write('the manifests are NOT rendered by kustomize: there is no kubectl here\n')
}

/** What `kubectl apply -k` would send. @throws {Error} with what kustomize says. */
export function render(folder: string): unknown[] {
  const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', folder], { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return documentsOf<unknown>(stdout)
}
